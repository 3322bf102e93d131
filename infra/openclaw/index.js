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
    api.on("before_prompt_build", (_event, context) => runs.started(context));
    api.on("before_tool_call", (event, context) => runs.beforeCall(event, context), LAST);
    api.on("after_tool_call", (event, context) => runs.afterCall(event, context));
    api.on("before_compaction", (_event, context) => runs.compacting(context));
    api.on("agent_end", (event, context) => runs.ended(event, context));
    api.on("tool_result_persist", (event) => runs.persisted(event));
    // Awaited before the model's next turn, so that a warning goes with the very result it is about.
    api.registerAgentToolResultMiddleware?.((event) => runs.result(event), { runtimes: ["openclaw"] });
  },
};
