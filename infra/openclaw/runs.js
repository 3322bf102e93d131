// What the hooks say, as events of runs: in their order, each call once, and verdicts enforced.

import { createHash } from "node:crypto";

// Calls and runs whose end was never told; the oldest go first.
const MAX_CALLS = 4096;
const MAX_RUNS = 1024;

// The sidecar reads 4 MiB at most, with the arguments. What is larger is told apart by its hash all the same.
const MAX_OUTCOME_BYTES = 2 * 1024 * 1024;

export class Runs {
  #sidecar;
  #logger;
  #runs = new Map();
  #runOfSession = new Map();
  #calls = new Map();

  constructor(sidecar, logger) {
    this.#sidecar = sidecar;
    this.#logger = logger;
  }

  started(context) {
    return this.#safely(() => {
      const run = this.#run(context);
      // OpenClaw says it again when it tries again; to the judge that would be a fresh run.
      if (!run || run.told) return;
      run.told = true;
      this.#later(run, () => this.#sidecar.event({ type: "run.started", ...run.ids }));
    });
  }

  /** Ask before a call. OpenClaw runs it unless this returns `block`. */
  beforeCall(event, context) {
    return this.#safely(async () => {
      const run = this.#run({ ...context, runId: event.runId ?? context.runId });
      if (!run) return undefined;
      this.#publishCompaction(run, true);
      const call = { run, id: event.toolCallId ?? context.toolCallId, tool: event.toolName, args: event.params ?? {} };
      remember(this.#calls, call.id, call, MAX_CALLS);
      const answer = await this.#inOrder(run, () => this.#sidecar.before(fields(call)));
      if (answer) {
        if (answer.action === "abort") run.aborted = answer.message;
        // A person may have released it. A sidecar that has just started, and reads the verdicts still, cannot know.
        else if (answer.joined !== false) run.aborted = undefined;
        call.refused = answer.action === "abort" || answer.action === "block";
        if (call.refused) return this.#refuse(run, answer.message);
      }
      if (run.aborted) {
        // The sidecar is away or does not know yet, but what it said last stands.
        call.refused = true;
        return this.#refuse(run, run.aborted);
      }
      return undefined;
    });
  }

  /** The outcome of a call, before the model sees it: it is published, and a warning is added to it. */
  result(event) {
    return this.#safely(async () => {
      const call = this.#calls.get(event.toolCallId);
      if (!call || call.refused || call.finished) return undefined;
      call.finished = true;
      const outcome = outcomeOf(event.result, event.isError);
      const sent = blocked(event.result)
        ? () => this.#sidecar.event({ type: "tool_call.blocked", ...fields(call) })
        : () => this.#sidecar.after({ ...fields(call), args: event.args ?? call.args, ...outcome });
      const answer = await this.#inOrder(call.run, sent);
      if (!answer?.note) return undefined;
      return {
        result: { ...event.result, content: [...(event.result.content ?? []), { type: "text", text: answer.note }] },
      };
    });
  }

  /** A result is written down. Where OpenClaw lets this plugin see no results before, its warning comes with the next. */
  persisted(event) {
    const run = this.#calls.get(event.toolCallId)?.run;
    if (!run?.note || !Array.isArray(event.message?.content)) return undefined;
    const content = [...event.message.content, { type: "text", text: run.note }];
    run.note = undefined;
    return { message: { ...event.message, content } };
  }

  /** The outcome once more, when it is the model's: the last word on calls that `result` was not told of. */
  afterCall(event, context) {
    return this.#safely(() => {
      const known = this.#calls.get(event.toolCallId);
      this.#calls.delete(event.toolCallId);
      if (known?.refused || known?.finished) return;
      const run = known?.run ?? this.#run({ ...context, runId: event.runId ?? context.runId });
      if (!run) return;
      const call = known ?? { run, id: event.toolCallId, tool: event.toolName, args: event.params ?? {} };
      if (!blocked(event.result)) {
        const outcome = outcomeOf(event.result, event.error !== undefined);
        this.#later(run, async () => {
          const answer = await this.#sidecar.after({ ...fields(call), ...outcome });
          run.note = answer?.note ?? run.note;
        });
        return;
      }
      // OpenClaw's own loop detection refused it, and asked nobody.
      this.#publishCompaction(run, true);
      if (!known) this.#later(run, () => this.#sidecar.event({ type: "tool_call.started", ...fields(call) }));
      this.#later(run, () => this.#sidecar.event({ type: "tool_call.blocked", ...fields(call) }));
    });
  }

  /** A compaction begins. Whether it succeeds is not told; that the run goes on says so. */
  compacting(context) {
    return this.#safely(() => {
      const run = this.#runs.get(context.runId ?? this.#runOfSession.get(context.sessionId ?? context.sessionKey));
      if (run) run.compacted = true;
    });
  }

  /** A run is over. Told only where `hooks.allowConversationAccess` is set; waits until everything is sent. */
  ended(event, context) {
    return this.#safely(async () => {
      const run = this.#runs.get(event.runId ?? context.runId);
      if (!run) return;
      this.#publishCompaction(run, event.success !== false);
      this.#later(run, () =>
        this.#sidecar.event({ type: "run.finished", ...run.ids, reason: event.success === false ? "error" : "done" }),
      );
      this.#runs.delete(run.ids.run_id);
      await run.queue;
    });
  }

  #run({ runId, sessionId, sessionKey, agentId }) {
    if (!runId) return undefined;
    let run = this.#runs.get(runId);
    if (!run) {
      const ids = { run_id: runId, session_id: sessionId ?? sessionKey, agent_id: agentId };
      run = { ids, queue: Promise.resolve(), told: false, compacted: false, aborted: undefined, note: undefined };
      remember(this.#runs, runId, run, MAX_RUNS);
      for (const session of [sessionId, sessionKey]) {
        if (session) remember(this.#runOfSession, session, runId, 2 * MAX_RUNS);
      }
    }
    return run;
  }

  #publishCompaction(run, succeeded) {
    if (!run.compacted) return;
    run.compacted = false;
    const event = { type: "compaction", ...run.ids, trigger: "in_attempt", succeeded };
    this.#later(run, () => this.#sidecar.event(event));
  }

  #refuse(run, reason) {
    if (run.aborted) endRun(run, this.#logger);
    return { block: true, blockReason: reason };
  }

  // A run's requests go one after another: the judge counts them in their order.
  #inOrder(run, send) {
    const answer = run.queue.then(send);
    run.queue = answer.catch(() => undefined);
    return answer;
  }

  #later(run, send) {
    this.#inOrder(run, send).catch((error) => this.#tell(error));
  }

  // A mistake of ours must never reach the agent: OpenClaw would refuse the call, or drop its result.
  async #safely(act) {
    try {
      return await act();
    } catch (error) {
      this.#tell(error);
      return undefined;
    }
  }

  #tell(error) {
    this.#logger.warn(`loopwarden: ${error?.stack ?? error}`);
  }
}

// OpenClaw lets a run go on when its calls are refused; this ends it as /stop would. It is tried at each refusal: within
// an attempt that went on after a compaction, OpenClaw 2026.7.1 has lost its own handle on the run. Then, and where its
// API lacks this, refusing everything has to do.
async function endRun(run, logger) {
  if (run.ended) return;
  const { run_id: runId, session_id: sessionId } = run.ids;
  try {
    const { abortAgentHarnessRun } = await import("openclaw/plugin-sdk/agent-harness-runtime");
    run.ended = abortAgentHarnessRun(sessionId);
    if (run.ended) logger.warn(`loopwarden: run ${runId} is ended`);
  } catch (error) {
    run.ended = true;
    logger.warn(`loopwarden: run ${runId} cannot be ended, all its calls are refused: ${error?.message}`);
  }
}

function fields({ run, id, tool, args }) {
  return { ...run.ids, call_id: id, tool, args };
}

function blocked(result) {
  return result?.details?.status === "blocked";
}

function outcomeOf(result, isError) {
  if (result === undefined || result === null) return {};
  if (!isError) return { result: { content: sized(result.content), details: sized(result.details) } };
  const texts = (result.content ?? []).map((part) => part?.text).filter((text) => typeof text === "string");
  return { error: sized(texts.join("\n")) };
}

function sized(value) {
  const text = JSON.stringify(value);
  if (text === undefined || Buffer.byteLength(text) <= MAX_OUTCOME_BYTES / 2) return value;
  return `sha256 ${createHash("sha256").update(text).digest("hex")}, ${Buffer.byteLength(text)} bytes`;
}

function remember(map, key, value, most) {
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
}
