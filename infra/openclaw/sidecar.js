// Requests to the sidecar: short, counted, and never a reason for an agent to stop.
import http from "node:http";

const DEFAULT_URL = "http://127.0.0.1:9099";
const DEFAULT_TIMEOUT_MS = 250;
// After a time-out, calls are not held up again for so long. (A refused connection answers at once.)
const PAUSE_MS = 2000;
// OpenClaw, when it starts, is busy for longer than a time-out. An interval that fires late fires once, so that
// only time in which an answer could have been heard is counted.
const SLICES = 5;
// The sidecar takes no more.
const MAX_CERTAIN = 60;

export class Sidecar {
  #target;
  #agent = new http.Agent({ keepAlive: true });
  #headers = { "content-type": "application/json" };
  #timeoutMs;
  #certain;
  #logger;
  #pausedUntil = 0;
  #lost = 0;

  constructor({ url = DEFAULT_URL, socket, token, certain = 0, timeoutMs = DEFAULT_TIMEOUT_MS }, logger) {
    const { hostname, port } = new URL(url);
    this.#target = socket
      ? { socketPath: socket }
      : { host: hostname.replace(/^\[|\]$/g, ""), port: port || 80 };
    this.place = socket ?? url;
    this.#timeoutMs = timeoutMs;
    this.#certain = Math.min(Math.max(certain, 0), MAX_CERTAIN);
    this.#logger = logger;
    if (this.#certain !== certain) {
      logger.warn(`loopwarden: certain: must be 0 to ${MAX_CERTAIN} seconds, got ${certain}: it is ${this.#certain}`);
    }
    const secret = token ?? process.env.LOOPWARDEN_SIDECAR_TOKEN;
    if (secret) this.#headers.authorization = `Bearer ${secret}`;
  }

  /** Publish an event. */
  event(event) {
    return this.#ask("/v1/events", event, 0);
  }

  /** Ask before a call; the sidecar publishes that it starts, or that it was refused. Undefined: it is away. */
  before(call) {
    return this.#ask("/v1/calls/before", { ...call, certain: this.#certain }, this.#certain);
  }

  /** Publish a call's outcome; the answer may hold a note for the model. Undefined: the sidecar is away. */
  after(call) {
    return this.#ask("/v1/calls/after", { ...call, certain: this.#certain }, this.#certain);
  }

  async #ask(path, body, certain) {
    if (Date.now() < this.#pausedUntil) {
      this.#lost += 1;
      return undefined;
    }
    const timeoutMs = this.#timeoutMs + certain * 1000;
    try {
      const answer = await this.#post(path, JSON.stringify(body), timeoutMs);
      if (this.#lost > 0) {
        this.#logger.info(`loopwarden: the sidecar answers again; ${this.#lost} requests were lost`);
        this.#lost = 0;
      }
      return answer;
    } catch (error) {
      if (error.timedOut) this.#pausedUntil = Date.now() + PAUSE_MS;
      if (error.refused) {
        // It is there, and does not take this one request: that says nothing about the others.
        this.#logger.warn(`loopwarden: ${path}: ${error.message}`);
        return undefined;
      }
      this.#lost += 1;
      if (this.#lost === 1) {
        const why = error.code ?? error.message;
        this.#logger.warn(`loopwarden: no sidecar at ${this.place} (${why}): calls go on unwatched until it answers`);
      }
      return undefined;
    }
  }

  #post(path, text, timeoutMs) {
    return new Promise((resolve, reject) => {
      const request = http.request(
        {
          ...this.#target,
          path,
          method: "POST",
          agent: this.#agent,
          headers: { ...this.#headers, "content-length": Buffer.byteLength(text) },
        },
        (response) => {
          const chunks = [];
          response.on("data", (chunk) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const answer = Buffer.concat(chunks).toString();
            if (response.statusCode < 300) return resolve(parsed(answer));
            const failure = new Error(`${response.statusCode} ${answer.slice(0, 300)}`);
            return reject(Object.assign(failure, { refused: response.statusCode < 500 }));
          });
        },
      );
      let slicesLeft = SLICES;
      const timer = setInterval(() => {
        slicesLeft -= 1;
        if (slicesLeft > 0) return;
        request.destroy(Object.assign(new Error(`no answer in ${timeoutMs} ms`), { timedOut: true }));
      }, timeoutMs / SLICES);
      request.on("close", () => clearInterval(timer));
      request.on("error", reject);
      request.end(text);
    });
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
