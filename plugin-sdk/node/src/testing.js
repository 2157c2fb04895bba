/**
 * @file A host in memory, for an author's tests of a whole plugin.
 *
 * It speaks the real protocol; only the process is missing, and most of the host's validation: arguments
 * arrive as the test gives them, but for keys that nobody declared, which are refused as a host does.
 */

import { tmpdir } from 'node:os';

import { complain } from './complaint.js';
import { CODE, fromRpc, PluginError, toRpc } from './error.js';
import { LineSplitter } from './frames.js';
import { parse, stringify } from './json.js';
import { nearestOption, refuseUnknown } from './names.js';
import { running } from './plugin.js';
import { Reply } from './reply.js';
import { Session } from './session.js';

/** @typedef {import('./plugin.js').Plugin} Plugin */

/** A test that waits for more milliseconds has found a plugin that does not answer. */
const PATIENCE = 60_000;

/** Each call has as many milliseconds unless the test says otherwise. */
const DEADLINE = 30_000;

/** What a host says of arguments that do not fit, with the name `invalid_arguments`. */
const INVALID_ARGUMENTS = 2001;

/** Keywords by which a schema may take keys that stand elsewhere than under its `properties`. */
const TAKES_MORE = ['patternProperties', '$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas'];

const CALL_OPTIONS = ['deadlineMs', 'attempt', 'sessionId', 'traceparent', 'caller', 'idempotencyKey', 'locale'];

/** What this host offers, as plugd does. */
const FEATURES = ['host_calls', 'host_asks', 'progress', 'partial', 'log'];

/**
 * What a test may say about a call.
 * @typedef {object} CallOptions
 * @property {number} [deadlineMs]
 * @property {number} [attempt]
 * @property {string} [sessionId]
 * @property {string} [traceparent]
 * @property {string} [caller]
 * @property {string} [idempotencyKey]
 * @property {string} [locale]
 */

/**
 * @typedef {object} HostOptions
 * @property {object} [config] the configuration for `init`; its defaults are the plugin's to fill in
 * @property {string} [dataDir] the plugin's folder; the system's for temporary files unless said
 * @property {number} [deadlineMs] how long each call has; 30,000 unless said
 * @property {Record<string, (args: any) => unknown>} [calls] plays other plugins: what they answer, by
 *   `plugin.operation`; data, a `Reply`, or a `PluginError` thrown
 * @property {((name: string, prompt: string) => unknown) | Record<string, unknown>} [answers] plays the
 *   person behind the calls: what they answer, by the question's name; without it there is nobody to ask
 */

/** Runs a plugin within a test and calls it. */
export class Host {
  #options;
  #running;
  #session;
  #splitter;
  #nextId = 1;
  /** What came back so far, by the id of the request. @type {Map<string, TestReply>} */
  #replies = new Map();
  /** Told whenever something came. @type {Set<() => void>} */
  #watchers = new Set();
  /** @type {Promise<void> | undefined} */
  #started;

  /**
   * Takes a plugin in; it is described and initialised at the first call.
   * @param {Plugin} plugin
   * @param {HostOptions} [options]
   */
  constructor(plugin, options = {}) {
    refuseUnknown('a Host', options, ['config', 'dataDir', 'deadlineMs', 'calls', 'answers']);
    this.#options = options;
    this.#running = running(plugin);
    this.#splitter = new LineSplitter({ line: (text) => this.#take(parse(text)), tooLong() {}, notUtf8() {} });
    this.#session = new Session(this.#running, {
      write: (line) => queueMicrotask(() => this.#splitter.push(Buffer.from(line))),
      leave() {},
    });
  }

  /**
   * Describes and initialises the plugin, once.
   * @returns {Promise<void>}
   * @throws {PluginError} why it does not start
   */
  start() {
    this.#started ??= this.#start();
    return this.#started;
  }

  /** What the plugin declares. @returns {Promise<any>} */
  manifest() {
    return this.#request('describe', {
      protocol: { versions: [1], features: FEATURES },
      host: { name: 'test', version: '0' },
    });
  }

  /**
   * Calls an operation and waits for its end.
   * @param {string} operation
   * @param {object} [args]
   * @param {CallOptions} [options]
   * @returns {Promise<TestReply>} which also tells of a failure
   */
  async call(operation, args, options) {
    return (await this.begin(operation, args, options)).ended();
  }

  /**
   * Calls an operation without waiting for its end.
   * @param {string} operation
   * @param {object} [args]
   * @param {CallOptions} [options]
   * @returns {Promise<RunningCall>}
   */
  async begin(operation, args = {}, options = {}) {
    await this.start();
    refuseUnknown('a call', options, CALL_OPTIONS);
    const callId = this.#newId();
    const misfit = this.#undeclared(operation, args);
    if (misfit) {
      end(this.#reply(callId), undefined, misfit);
    } else {
      const params = { operation, arguments: args, context: this.#contextOf(callId, options) };
      this.#send({ id: Number(callId), method: 'call', params });
    }
    return new RunningCall(this.#reply(callId), {
      cancel: () => this.#send({ method: 'cancel', params: { call_id: callId } }),
      until: (isThere) => this.#until(callId, isThere),
    });
  }

  /**
   * Gives the plugin a changed configuration.
   * @param {object} config
   * @returns {Promise<void>}
   * @throws {PluginError} what its `reload` says
   */
  async reload(config) {
    await this.start();
    await this.#request('reload', { config });
  }

  /**
   * Tells the plugin to shut down and waits until it has.
   * @returns {Promise<void>}
   * @throws {PluginError} what its `shutdown` says
   */
  async shutdown() {
    await this.#request('shutdown', { reason: 'stop', grace_ms: 5000 });
  }

  async #start() {
    await this.manifest();
    const { config = {}, dataDir = tmpdir() } = this.#options;
    await this.#request('init', { config, data_dir: dataDir, locale: 'en', log_level: 'trace' });
  }

  /**
   * The host's failure of a call with keys that its operation does not declare.
   * @param {string} operation
   * @param {object} args
   * @returns {import('./error.js').RpcError | undefined}
   */
  #undeclared(operation, args) {
    const { operations } = this.#running.manifest;
    const known = onlyKeys(operations.find((/** @type {any} */ it) => it.name === operation)?.input_schema ?? {});
    const unknown = known && Object.keys(args).find((key) => !known.includes(key));
    if (known === undefined || unknown === undefined) return undefined;
    const expected = known.length > 0 ? `expected only the keys ${known.join(', ')}` : 'expected no arguments';
    const message = `the arguments do not fit ${operation}: ${unknown}: ${expected}${nearestOption(unknown, known)}`;
    return { code: INVALID_ARGUMENTS, message, data: { name: 'invalid_arguments' } };
  }

  /**
   * @param {string} callId
   * @param {CallOptions} options
   */
  #contextOf(callId, options) {
    return {
      call_id: callId,
      deadline_ms: options.deadlineMs ?? this.#options.deadlineMs ?? DEADLINE,
      attempt: options.attempt ?? 1,
      session_id: options.sessionId,
      traceparent: options.traceparent,
      caller: options.caller ?? 'test',
      idempotency_key: options.idempotencyKey,
      locale: options.locale,
    };
  }

  /**
   * @param {string} method
   * @param {object} params
   */
  async #request(method, params) {
    const id = this.#newId();
    this.#send({ id: Number(id), method, params });
    await this.#until(id, (reply) => reply.isOver);
    const { error, result } = this.#reply(id);
    if (error) throw error;
    return result;
  }

  #newId() {
    const id = String(this.#nextId);
    this.#nextId += 1;
    this.#replies.set(id, new TestReply());
    return id;
  }

  /** @param {object} message */
  #send(message) {
    const line = stringify({ jsonrpc: '2.0', ...message }, 'the message');
    queueMicrotask(() => this.#session.receive(Buffer.from(`${line}\n`)));
  }

  /** @param {string} id */
  #reply(id) {
    return this.#replies.get(id) ?? new TestReply();
  }

  /**
   * Waits until a reply is as far as wanted.
   * @param {string} id
   * @param {(reply: TestReply) => boolean} isThere
   * @returns {Promise<void>}
   */
  #until(id, isThere) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!isThere(this.#reply(id))) return;
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(look);
        reject(new Error(`the plugin did not answer within ${PATIENCE} ms`));
      }, PATIENCE);
      this.#watchers.add(look);
      look();
    });
  }

  /** @param {any} message */
  #take({ id, method, params, result, error }) {
    if (method === undefined) {
      end(this.#reply(String(id)), result, error);
    } else if (id !== undefined) {
      void this.#answer(id, method, params);
    } else {
      // Of a hook nobody would see the stack otherwise.
      if (method === 'log' && params.level === 'error' && params.call_id === undefined) complain(params.message);
      note(this.#reply(params.call_id), method, params);
    }
    for (const look of this.#watchers) look();
  }

  /**
   * @param {unknown} id
   * @param {string} method
   * @param {any} params
   */
  async #answer(id, method, params) {
    const asks = method === 'host/ask';
    try {
      this.#send({ id, result: asks ? await this.#person(params) : await this.#otherPlugin(params) });
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      this.#send({ id, error: { ...toRpc(error), code: asks ? 4 : 3 } });
    }
  }

  /** @param {{questions: {name: string, prompt: string}[]}} params */
  async #person({ questions }) {
    const { answers: person } = this.#options;
    if (person === undefined)
      throw new PluginError('nobody_to_ask', 'this test has nobody to ask: give answers to its Host');
    /** @type {Record<string, unknown>} */
    const answers = {};
    for (const { name, prompt } of questions) {
      const answer = typeof person === 'function' ? await person(name, prompt) : person[name];
      if (answer === undefined) throw new PluginError('declined', `this test does not answer ${name}`);
      answers[name] = answer;
    }
    return { answers };
  }

  /** @param {{operation: string, arguments: object}} params */
  async #otherPlugin({ operation, arguments: args }) {
    const other = this.#options.calls?.[operation];
    if (other === undefined)
      throw new PluginError('unknown_operation', `this test has no ${operation}: give calls to its Host`);
    const answer = await other(args);
    const { data, summary } = answer instanceof Reply ? answer : new Reply(answer);
    return { data: data ?? null, summary, call_id: 'inner' };
  }
}

/**
 * The keys that a host takes; `undefined` where it takes any, or that is not to be read off easily.
 * @param {any} schema
 * @returns {string[] | undefined}
 */
function onlyKeys(schema) {
  const { properties = {}, additionalProperties: others } = schema;
  const keys = Object.keys(properties);
  const isClosed = others === false || (keys.length > 0 && others === undefined);
  return isClosed && !TAKES_MORE.some((keyword) => keyword in schema) ? keys : undefined;
}

/** How a call went. */
export class TestReply {
  /** Its failure, if it failed. @type {PluginError | undefined} */
  error;
  /** What was logged under its id. @type {{level: string, message: string, traceId?: string}[]} */
  logs = [];
  /** How far it said it was. @type {{done: number, total?: number, message?: string}[]} */
  progress = [];
  /** Pieces sent ahead. @type {unknown[]} */
  partials = [];
  /** The whole answer, as it was sent. @type {any} */
  result;
  /** Whether it has ended. */
  isOver = false;

  /** The data of a call that went well. @throws {PluginError} the failure of one that did not @returns {any} */
  get data() {
    if (this.error?.code === CODE.fault) this.error.cause ??= this.#stacks();
    if (this.error) throw this.error;
    return this.result?.data;
  }

  /** What was logged of a fault, for who reads of the failed test. */
  #stacks() {
    const failures = this.logs.filter(({ level }) => level === 'error');
    return failures.map(({ message }) => message).join('\n');
  }

  /** Its one line. @returns {string | undefined} */
  get summary() {
    return this.result?.summary;
  }

  /** What it offers to do next. @returns {{operation?: string, description?: string, arguments?: object}[]} */
  get nextActions() {
    return this.result?.next_actions ?? [];
  }
}

/**
 * Takes down the answer.
 * @param {TestReply} reply
 * @param {unknown} result
 * @param {import('./error.js').RpcError | undefined} error
 */
function end(reply, result, error) {
  reply.isOver = true;
  reply.result = result;
  if (error) reply.error = fromRpc(error);
}

/**
 * Takes down what was sent beside it.
 * @param {TestReply} reply
 * @param {string} method
 * @param {any} params
 */
function note(reply, method, { call_id: _, ...params }) {
  const { level, message, trace_id: traceId } = params;
  if (method === 'log') reply.logs.push({ level, message, traceId });
  else if (method === 'progress') reply.progress.push(params);
  else if (method === 'partial') reply.partials.push(params.data);
}

/** A call under way. */
export class RunningCall {
  #reply;
  #host;

  /**
   * @param {TestReply} reply
   * @param {{cancel: () => void, until: (isThere: (reply: TestReply) => boolean) => Promise<void>}} host
   */
  constructor(reply, host) {
    this.#reply = reply;
    this.#host = host;
  }

  /** Tells the plugin to stop. */
  cancel() {
    this.#host.cancel();
  }

  /**
   * Waits until the call said it was as far as `done`.
   * @param {number} done
   * @throws {Error} when it ends before
   */
  async reached(done) {
    const isThere = () => this.#reply.progress.some((progress) => progress.done >= done);
    await this.#host.until((reply) => reply.isOver || isThere());
    if (!isThere()) throw new Error(`the call ended before it was as far as ${done}`);
  }

  /** Waits for the call's end. @returns {Promise<TestReply>} */
  async ended() {
    await this.#host.until((reply) => reply.isOver);
    return this.#reply;
  }
}
