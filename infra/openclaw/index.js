// Loopwarden inside OpenClaw. Which hook says what, and in which order they come: README.md beside this.
import { Runs } from "./runs.js";
import { Sidecar } from "./sidecar.js";

// The last to be asked: what another plugin refuses or rewrites has happened by then.
const LAST = { priority: -1000 };

export default {
  id: "loopwarden",
  name: "Loopwarden",
  register(api) {
    const runs = new Runs(new Sidecar(api.pluginConfig ?? {}, api.logger), api.logger);
    api.on("before_agent_start", (event, context) => runs.started({ ...context, runId: event.runId ?? context.runId }));
    api.on("before_tool_call", (event, context) => runs.beforeCall(event, context), LAST);
    api.on("after_tool_call", (event, context) => runs.afterCall(event, context));
    api.on("before_compaction", (_event, context) => runs.compacting(context));
    api.on("agent_end", (event, context) => runs.ended(event, context));
    // Awaited before the model's next turn, so that a warning can go with the result.
    api.registerAgentToolResultMiddleware?.((event) => runs.result(event), { runtimes: ["openclaw"] });
  },
};
