/** @file Calls from their arrival to their answers, as many at once as there are lanes. */

import { forgotten } from './asked.js';
import { failure } from './complaint.js';
import { cancel, Context, leftBehind, wasCancelled } from './context.js';
import { CODE, FaultFound, faultToRpc, Misuse, PluginError, toRpc } from './error.js';
import { stringify } from './json.js';
import { Reply } from './reply.js';

/**
 * Calls that may wait for a lane. A host sends no more than there are lanes, so this only bounds what a
 * broken one can pile up.
 */
const WAITING_MAX = 1024;

/** @typedef {import('./operation.js').Operation} Operation */

/**
 * What calls see of the plugin's life.
 * @typedef {object} Life
 * @property {'unopened' | 'opening' | 'open' | 'closed'} stage
 * @property {unknown} state what `init` returned
 * @property {unknown} config
 */

/** A call between its arrival and its answer. */
class Call {
  /** Whether it was answered: what its handler still gives is dropped then. */
  answered = false;
  /** Whether it was cancelled before it ran. */
  cancelled = false;
  /** Its context, once it runs. @type {Context | undefined} */
  context;

  /**
   * @param {unknown} id
   * @param {Operation} operation
   * @param {object} args
   * @param {import('./context.js').CallContext} about
   */
  constructor(id, operation, args, about) {
    this.id = id;
    this.operation = operation;
    this.args = args;
    this.about = about;
  }
}

/** The calls of a session. */
export class Calls {
  #wire;
  #pending;
  #life;
  #name;
  #lanes;
  /** @type {Map<string, Operation>} */
  #operations;
  /** Those that run or wait, by their ids. @type {Map<string, Call>} */
  #all = new Map();
  /** Those that wait for a lane, or for `init`. @type {Call[]} */
  #waiting = [];
  #running = 0;
  #ambient;

  /**
   * @param {import('./plugin.js').Running} plugin
   * @param {import('./wire.js').Wire} wire
   * @param {import('./pending.js').Pending} pending
   * @param {Life} life
   * @param {import('node:async_hooks').AsyncLocalStorage<Call> | undefined} ambient knows the call that
   *   code runs for, where several run at once
   */
  constructor(plugin, wire, pending, life, ambient) {
    this.#wire = wire;
    this.#pending = pending;
    this.#life = life;
    this.#name = plugin.manifest.name;
    this.#lanes = plugin.lanes;
    this.#operations = new Map(plugin.operations.map((operation) => [operation.name, operation]));
    this.#ambient = ambient;
  }

  /** The call that the running code belongs to, as far as is known. */
  get #current() {
    if (this.#ambient) return this.#ambient.getStore();
    // With one lane, whatever runs belongs to the call that runs.
    for (const call of this.#all.values()) if (call.context) return call;
    return undefined;
  }

  /** The context of the call that the running code belongs to. */
  get currentContext() {
    return this.#current?.context;
  }

  /**
   * Fails the call whose code has thrown where nobody could catch it.
   * @param {unknown} thrown
   */
  failCurrent(thrown) {
    const call = this.#current;
    if (call && !call.answered) this.#refuse(call, faultToRpc(call.operation.name, thrown));
  }

  /**
   * Takes a call: runs it, or has it wait.
   * @param {unknown} id
   * @param {any} params
   */
  take(id, params) {
    const operation = this.#operations.get(params?.operation);
    if (operation === undefined) return this.#wire.refuse(id, this.#noOperation(params?.operation));
    const about = params.context;
    if (typeof about?.call_id !== 'string') {
      const message = 'the params of call: expected context.call_id, a text';
      return this.#wire.refuse(id, { code: CODE.invalidParams, message });
    }
    const call = new Call(id, operation, params.arguments ?? {}, about);
    this.#pending.begin();
    this.#all.set(about.call_id, call);
    if (this.#hasLane()) return this.#run(call);
    if (this.#waiting.length < WAITING_MAX) return void this.#waiting.push(call);
    return this.#refuse(call, toRpc(new PluginError('overloaded', 'too many calls at once', { retryable: true })));
  }

  /**
   * Cancels a call.
   * @param {string} callId
   * @returns {boolean} whether there is such a call
   */
  cancel(callId) {
    const call = this.#all.get(callId);
    if (call === undefined) return false;
    call.cancelled = true;
    if (call.context) cancel(call.context);
    return true;
  }

  /** Runs calls that wait, as far as there are lanes. */
  runWaiting() {
    while (this.#waiting.length > 0 && this.#hasLane()) this.#run(/** @type {Call} */ (this.#waiting.shift()));
  }

  #hasLane() {
    return this.#running < this.#lanes && this.#life.stage !== 'opening';
  }

  /** @param {Call} call */
  #run(call) {
    const context = new Context(this.#wire, call.about, this.#life.state, this.#life.config);
    call.context = context;
    this.#running += 1;
    if (this.#ambient) this.#ambient.run(call, () => this.#handle(call, context));
    else this.#handle(call, context);
  }

  /**
   * Runs the handler; what is no promise is answered within this turn of the event loop.
   * @param {Call} call
   * @param {Context} context
   */
  #handle(call, context) {
    const { operation } = call;
    try {
      if (this.#life.stage !== 'open') throw this.#notOpen();
      if (call.cancelled) throw PluginError.cancelled();
      const args = operation.read(call.args);
      const outcome = isPromise(args)
        ? args.then((read) => operation.handler(read, context))
        : operation.handler(args, context);
      if (!isPromise(outcome)) return this.#succeed(call, outcome);
      outcome.then(
        (value) => this.#succeed(call, value),
        (error) => this.#fail(call, error),
      );
    } catch (error) {
      this.#fail(call, error);
    }
  }

  /**
   * @param {Call} call
   * @param {unknown} value
   */
  #succeed(call, value) {
    if (call.answered) return;
    try {
      checkAwaited(call);
      this.#wire.answer(call.id, resultToJson(value));
    } catch (error) {
      return this.#fail(call, error);
    }
    this.#end(call);
  }

  /**
   * @param {Call} call
   * @param {unknown} error
   */
  #fail(call, error) {
    if (call.answered) return;
    const { context } = call;
    const isAbort = error instanceof Error && error.name === 'AbortError';
    const isCancelled = isAbort && context !== undefined && wasCancelled(context);
    const reason = isCancelled ? PluginError.cancelled() : error;
    const rpc = failure(reason, call.operation.name, (text) => this.#wire.tellFault(text, context));
    // A TypeError may come of an answer that was taken for what is still to come.
    const left = reason instanceof TypeError && !(reason instanceof FaultFound) && context && leftBehind(context);
    if (left) rpc.message += `; ${forgotten(left)}`;
    this.#refuse(call, rpc);
  }

  /**
   * @param {Call} call
   * @param {import('./error.js').RpcError} error
   */
  #refuse(call, error) {
    this.#wire.refuse(call.id, error);
    this.#end(call);
  }

  /** @param {Call} call */
  #end(call) {
    call.answered = true;
    // One that never ran had no lane.
    if (call.context) this.#running -= 1;
    this.#all.delete(call.about.call_id);
    this.#pending.end();
    if (this.#waiting.length > 0) queueMicrotask(() => this.runWaiting());
  }

  #notOpen() {
    if (this.#life.stage === 'closed') {
      return new PluginError('shutting_down', 'the plugin is shutting down', { retryable: true });
    }
    return new PluginError('not_initialised', 'the plugin has not been initialised: send init first');
  }

  /** @param {unknown} name */
  #noOperation(name) {
    const there = [...this.#operations.keys()].join(', ') || 'none';
    return { code: CODE.methodNotFound, message: `${this.#name} has no operation "${name}"; it has ${there}` };
  }
}

/**
 * Throws where a handler has ended without waiting for what it asked for.
 * @param {Call} call
 */
function checkAwaited({ context }) {
  const what = context && leftBehind(context);
  if (what !== undefined) throw new Misuse(`it ended without an answer; ${forgotten(what)}`);
}

/**
 * What a handler gave, as the result of a call.
 * @param {unknown} value
 */
function resultToJson(value) {
  if (value === undefined) return '{"data":null}';
  if (!(value instanceof Reply)) return `{"data":${stringify(value)}}`;
  const { data = null, summary, nextActions } = value;
  let json = `{"data":${stringify(data)}`;
  if (summary !== undefined) json += `,"summary":${stringify(String(summary))}`;
  if (nextActions !== undefined) json += `,"next_actions":${stringify(nextActions, 'nextActions')}`;
  return `${json}}`;
}

/**
 * @param {any} value
 * @returns {value is Promise<any>}
 */
function isPromise(value) {
  return typeof value?.then === 'function';
}
