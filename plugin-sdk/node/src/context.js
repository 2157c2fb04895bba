/** @file Everything about one call, and the way from it to the host. */

import { format } from 'node:util';

import { Unawaited } from './asked.js';
import { PluginError } from './error.js';
import { refuseUnknown } from './names.js';
import { checkProgress } from './progress.js';
import { readAnswer, toQuestion } from './question.js';
import { Wire } from './wire.js';

/** @typedef {import('./wire.js').Level} Level */

/** No call is given longer than as many milliseconds, whatever its deadline says. */
const TIME_LEFT_MAX = 24 * 60 * 60 * 1000;

/** A call has as many milliseconds where nobody says. */
const DEADLINE = 30_000;

/** What a test may say about a call. */
const FOR_TEST = [
  ...['state', 'config', 'callId', 'deadlineMs', 'attempt'],
  ...['sessionId', 'traceparent', 'caller', 'idempotencyKey', 'locale'],
];

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/** What handlers and hooks share: the log, the state and the configuration. */
class Ground {
  /** @type {Wire} */
  #wire;

  /**
   * @param {Wire} wire
   * @param {unknown} state
   * @param {unknown} config
   */
  constructor(wire, state, config) {
    this.#wire = wire;
    /** What `init` returned, or the latest `reload` that returned something. @type {any} */
    this.state = state;
    /** The configuration. @type {any} */
    this.config = config;
  }

  /**
   * Writes a line to the plugin's log; arguments are formatted as `console.log` does.
   * @param {Level} level
   * @param {unknown} message
   * @param {unknown[]} more
   */
  log(level, message, ...more) {
    const text = typeof message === 'string' && more.length === 0 ? message : format(message, ...more);
    this.#wire.log(level, text, callOf(this));
  }

  /** Logs each step. @param {unknown} message @param {unknown[]} more */
  trace(message, ...more) {
    this.log('trace', message, ...more);
  }

  /** Logs for finding faults. @param {unknown} message @param {unknown[]} more */
  debug(message, ...more) {
    this.log('debug', message, ...more);
  }

  /** Logs something normal. @param {unknown} message @param {unknown[]} more */
  info(message, ...more) {
    this.log('info', message, ...more);
  }

  /** Logs something odd that was handled. @param {unknown} message @param {unknown[]} more */
  warn(message, ...more) {
    this.log('warn', message, ...more);
  }

  /** Logs a failure. @param {unknown} message @param {unknown[]} more */
  error(message, ...more) {
    this.log('error', message, ...more);
  }

  /**
   * Says how far it is: `done` of `total`, where the total is known. A few times a second are plenty.
   *
   * In `init` it asks for more time: 30 s each, 300 s in all.
   * @param {number} done
   * @param {number | null} [total]
   * @param {string} [message]
   * @throws {TypeError} where either is no number, or the message no text
   */
  progress(done, total, message) {
    checkProgress(done, total, message);
    this.#wire.progress({ done, total, message }, callOf(this)?.callId);
  }
}

/** @param {Ground} ground */
function callOf(ground) {
  return ground instanceof Context ? ground : undefined;
}

/** What a hook (`init`, `reload`, `shutdown`) knows besides the configuration. */
export class InitContext extends Ground {
  /**
   * @param {Wire} wire
   * @param {{dataDir?: string, locale?: string, state?: unknown, config?: unknown}} about
   */
  constructor(wire, { dataDir = '', locale = 'en', state, config }) {
    super(wire, state, config);
    /** A folder of the plugin's own that outlives its runs. @type {string} */
    this.dataDir = dataDir;
    /** The language to speak, a BCP 47 tag. @type {string} */
    this.locale = locale;
  }

  /**
   * A start without a host, for tests of a hook as a plain function.
   * @param {{dataDir?: string, locale?: string, state?: unknown, config?: unknown}} [about]
   */
  static forTest(about = {}) {
    refuseUnknown('InitContext.forTest', about, ['dataDir', 'locale', 'state', 'config']);
    return new InitContext(Wire.loose(), about);
  }
}

/**
 * The `context` of a `call`, as the host sends it.
 * @typedef {object} CallContext
 * @property {string} call_id
 * @property {number} [deadline_ms]
 * @property {number} [attempt]
 * @property {string} [session_id]
 * @property {string} [traceparent]
 * @property {string} [caller]
 * @property {string} [idempotency_key]
 * @property {string} [locale]
 */

/**
 * Marks a call as cancelled, and ends what waits on its behalf. @type {(context: Context) => void}
 */
export let cancel;

/** Whether a call was cancelled, as far as was heard by now. @type {(context: Context) => boolean} */
export let wasCancelled;

/**
 * What a handler that has ended asked for and did not wait for. @type {(context: Context) => string | undefined}
 */
export let leftBehind;

/**
 * One call: who asked, how long there is, and how to speak to the host meanwhile.
 *
 * Hand it on to whatever works for the call. There is nothing ambient: two calls at once share
 * nothing through it.
 */
export class Context extends Ground {
  #wire;
  #call;
  #receivedAt = performance.now();
  #cancelled = false;
  /** @type {AbortController | undefined} */
  #controller;
  /** How long people were asked, in milliseconds, counted once where several questions are open. */
  #askedBefore = 0;
  #askedSince = 0;
  #openQuestions = 0;
  /** @type {Unawaited | undefined} */
  #unawaited;

  /**
   * @param {Wire} wire
   * @param {CallContext} call
   * @param {unknown} [state]
   * @param {unknown} [config]
   */
  constructor(wire, call, state, config) {
    super(wire, state, config);
    this.#wire = wire;
    this.#call = call;
  }

  /**
   * A call without a host, for tests of handlers as plain functions.
   *
   * It has 30 seconds; what it logs is lost and what it asks the host fails. Where those matter, use
   * `Host` of `plugd-sdk/testing`.
   * @param {{state?: unknown, config?: unknown, callId?: string, deadlineMs?: number, attempt?: number,
   *   sessionId?: string, traceparent?: string, caller?: string, idempotencyKey?: string, locale?: string}} [about]
   */
  static forTest(about = {}) {
    refuseUnknown('Context.forTest', about, FOR_TEST);
    const call = {
      call_id: about.callId ?? 'test',
      deadline_ms: about.deadlineMs ?? DEADLINE,
      attempt: about.attempt,
      session_id: about.sessionId,
      traceparent: about.traceparent,
      caller: about.caller,
      idempotency_key: about.idempotencyKey,
      locale: about.locale,
    };
    return new Context(Wire.loose(), call, about.state, about.config);
  }

  /** The call's id, the host's own. */
  get callId() {
    return this.#call.call_id;
  }

  /** The session the call belongs to. */
  get sessionId() {
    return this.#call.session_id;
  }

  /** The W3C trace context to hand on to remote services. */
  get traceparent() {
    return this.#call.traceparent;
  }

  /** The trace's id, 32 hexadecimal digits: every log line of the call carries it. */
  get traceId() {
    return TRACEPARENT.exec(this.#call.traceparent ?? '')?.[1];
  }

  /** 1, or more where the host tries an idempotent call again. */
  get attempt() {
    return this.#call.attempt ?? 1;
  }

  /** The caller's key for having this done once. */
  get idempotencyKey() {
    return this.#call.idempotency_key;
  }

  /** Who calls: a caller's profile, or `plugin:NAME`. */
  get caller() {
    return this.#call.caller;
  }

  /** The language the caller speaks, a BCP 47 tag. */
  get locale() {
    return this.#call.locale;
  }

  /** How many milliseconds the host still waits; 0 once the deadline has passed. */
  get timeLeft() {
    return Math.max(0, this.#untilDeadline());
  }

  /** When the host stops waiting; later by as long as people took to answer questions. */
  get deadline() {
    return new Date(Date.now() + this.#untilDeadline());
  }

  /** Whether the host has asked to stop: after a timeout, too. */
  get cancelled() {
    // A handler that never awaits keeps the event loop from hearing of it.
    if (!this.#cancelled) this.#wire.look();
    return this.#cancelled;
  }

  /**
   * Throws once the call is cancelled, for use between two steps.
   * @throws {PluginError}
   */
  check() {
    if (this.cancelled) throw PluginError.cancelled();
  }

  /** Aborts when the call is cancelled: for `fetch` and everything else that takes a signal. */
  get signal() {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(PluginError.cancelled());
    }
    return this.#controller.signal;
  }

  /**
   * Waits until the call is cancelled, at most for so many milliseconds.
   * @param {number} ms
   * @returns {Promise<boolean>} whether it is cancelled
   */
  waitCancelled(ms) {
    const { signal } = this;
    if (signal.aborted) return this.#asked('waitCancelled', Promise.resolve(true));
    const waiting = new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve(signal.aborted);
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
    });
    return this.#asked('waitCancelled', waiting);
  }

  /**
   * Sends a piece of the result ahead of it, for those who watch. The answer must still be whole.
   * @param {unknown} data
   */
  partial(data) {
    this.#wire.partial(data, this.callId);
  }

  /**
   * Uses another plugin's operation, `plugin.operation`, and waits for its answer.
   *
   * The plugin must be named under `requires`. The inner call shares this one's deadline, session and
   * trace, and ends when this one is cancelled.
   * @param {string} operation
   * @param {object} [args]
   * @returns {Promise<{data: any, summary: string | undefined, callId: string | undefined}>}
   * @throws {PluginError} the inner call's failure: left uncaught, it names the plugin that failed
   */
  call(operation, args = {}) {
    return this.#asked('call', this.#callOther(operation, args));
  }

  /**
   * Asks the person behind the call, and waits for the answer; the call's clock stands still meanwhile.
   * @param {string} prompt the question, on one line
   * @param {import('./question.js').AnswerSchema} [schema] of the answer; any text if absent
   * @param {{name?: string}} [options] a name for the question, for programs that answer
   * @returns {Promise<any>}
   * @throws {PluginError} named `nobody_to_ask`, `declined` or `expired`
   */
  ask(prompt, schema, options) {
    return this.#asked('ask', this.#askOne({ prompt, schema }, options));
  }

  /**
   * Asks for a secret: it is not shown while it is typed, and never logged.
   * @param {string} prompt
   * @param {{name?: string}} [options]
   * @returns {Promise<string>}
   */
  askSecret(prompt, options) {
    return this.#asked('askSecret', this.#askOne({ prompt, secret: true }, options));
  }

  /**
   * Asks several things at once, at most 16; the answers come under the questions' names.
   * @param {Record<string, string | import('./question.js').Question>} questions
   * @returns {Promise<Record<string, any>>}
   */
  askMany(questions) {
    return this.#asked('askMany', this.#askAll(questions));
  }

  /** The session's variables; no host offers them yet: `not_offered`. */
  get vars() {
    /**
     * @param {string} what
     * @param {object} params
     * @param {(result: any) => any} read
     */
    const request = (what, params, read) => {
      const about = { feature: 'host_vars', notOffered: 'this host offers no session variables' };
      return this.#asked(`vars.${what}`, this.#request('host/vars', params, about).then(read));
    };
    return {
      /** Its value, `undefined` where there is none. @param {string} name @returns {Promise<any>} */
      get: (name) => request('get', { get: [name] }, (result) => result?.vars?.[name]),
      /** Sets a variable. @param {string} name @param {unknown} value @returns {Promise<void>} */
      set: (name, value) => request('set', { set: { [name]: value } }, () => undefined),
      /**
       * Sets a variable if it has the expected value; whether it did.
       * @param {string} name
       * @param {unknown} expected
       * @param {unknown} value
       * @returns {Promise<boolean>}
       */
      compareAndSet: (name, expected, value) => {
        const params = { compare_and_set: { name, expected, value } };
        return request('compareAndSet', params, (result) => result?.swapped === true);
      },
    };
  }

  /**
   * Tells those who listen that something happened; no host offers it yet: `not_offered`.
   * @param {string} event
   * @param {unknown} [data]
   * @returns {Promise<void>}
   */
  emit(event, data = null) {
    const about = { feature: 'host_emit', notOffered: 'this host offers no events' };
    return this.#asked('emit', this.#request('host/emit', { event, data }, about).then(() => undefined));
  }

  static {
    cancel = (context) => {
      if (context.#cancelled) return;
      context.#cancelled = true;
      context.#wire.callCancelled(context.callId);
      context.#controller?.abort(PluginError.cancelled());
    };
    wasCancelled = (context) => context.#cancelled;
    leftBehind = (context) => context.#unawaited?.leave();
  }

  /**
   * @template T
   * @param {string} what
   * @param {Promise<T>} answer
   */
  #asked(what, answer) {
    this.#unawaited ??= new Unawaited();
    return this.#unawaited.add(what, answer);
  }

  #untilDeadline() {
    const now = performance.now();
    const given = Math.min(Number(this.#call.deadline_ms ?? DEADLINE), TIME_LEFT_MAX);
    const asked = this.#askedBefore + (this.#openQuestions > 0 ? now - this.#askedSince : 0);
    return this.#receivedAt + given + asked - now;
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {{feature: string, notOffered: string}} about
   */
  async #request(method, params, about) {
    this.check();
    return this.#wire.request(method, params, { callId: this.callId, ...about });
  }

  /**
   * @param {string} operation
   * @param {object} args
   */
  async #callOther(operation, args) {
    const about = { feature: 'host_calls', notOffered: 'this host calls no other plugins' };
    const result = await this.#request('host/call', { operation, arguments: args }, about);
    return { data: result?.data, summary: result?.summary, callId: result?.call_id };
  }

  /**
   * @param {import('./question.js').Question} question
   * @param {{name?: string}} [options]
   */
  async #askOne(question, options = {}) {
    refuseUnknown('a question', options, ['name']);
    const { name = 'answer' } = options;
    return (await this.#askAll({ [name]: question }))[name];
  }

  /** @param {Record<string, string | import('./question.js').Question>} questions */
  async #askAll(questions) {
    const named = Object.entries(questions);
    const params = { questions: named.map(([name, question]) => toQuestion(name, question)) };
    const result = await this.#whilePeopleAreAsked(() =>
      this.#request('host/ask', params, { feature: 'host_asks', notOffered: 'this host asks nobody' }),
    );
    /** @type {Record<string, any>} */
    const answers = {};
    for (const [name, question] of named) answers[name] = await readAnswer(name, question, result?.answers);
    return answers;
  }

  /**
   * @template T
   * @param {() => Promise<T>} ask
   */
  async #whilePeopleAreAsked(ask) {
    if (this.#openQuestions === 0) this.#askedSince = performance.now();
    this.#openQuestions += 1;
    try {
      return await ask();
    } finally {
      this.#openQuestions -= 1;
      if (this.#openQuestions === 0) this.#askedBefore += performance.now() - this.#askedSince;
    }
  }
}
