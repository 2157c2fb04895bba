/** @file Failures: what a handler throws, and how that goes over the wire. */

import { isName, NAME_RULE, nearestName, refuseUnknown } from './names.js';

/** Codes of errors in the protocol. */
export const CODE = Object.freeze({
  /** The operation failed, in its own words. */
  failed: 1,
  /** A fault in the plugin. */
  fault: 2,
  invalidParams: -32602,
  methodNotFound: -32601,
  cancelled: -32800,
});

/** The host clips messages at as many characters. */
const MESSAGE_MAX = 2000;

const OPTIONS = ['hint', 'retryable', 'cause', 'code'];

/**
 * An error as it stands in a message.
 * @typedef {object} RpcError
 * @property {number} code
 * @property {string} message
 * @property {{name?: string, hint?: string, retryable?: boolean, cause?: unknown}} [data]
 */

/**
 * A failure in the plugin's own words, for handlers and hooks to throw.
 *
 * Callers get its name, message and hint. Any other error that a handler throws is a fault of the
 * plugin: the caller gets its class, and its message and stack go to the log.
 */
export class PluginError extends Error {
  /**
   * @param {string | undefined} name the failure's name in snake case, for programs
   * @param {string} message what happened, for people: what was expected, what was found
   * @param {{hint?: string, retryable?: boolean, cause?: unknown, code?: number}} [options]
   * @throws {TypeError} where the name or an option is none
   */
  constructor(name, message, options = {}) {
    const { hint, retryable = false, cause, code = CODE.failed } = options;
    super(message, cause === undefined ? undefined : { cause });
    if (name !== undefined && !isName(name)) {
      throw new BadName(name, message);
    }
    refuseUnknown('a PluginError', options, OPTIONS);
    if (name !== undefined) this.name = name;
    /** What the caller can do about it. @type {string | undefined} */
    this.hint = hint;
    /** Whether the same call may succeed later. @type {boolean} */
    this.retryable = retryable;
    /** The code it has on the wire. @type {number} */
    this.code = code;
  }

  /** What a call throws that stopped because it was cancelled. */
  static cancelled() {
    return new PluginError(undefined, 'the call was cancelled', { code: CODE.cancelled });
  }

  /** Whether this is the end of a cancelled call. */
  get isCancelled() {
    return this.code === CODE.cancelled;
  }
}
Object.defineProperty(PluginError.prototype, 'name', { value: 'PluginError', configurable: true, writable: true });

/** A declaration that cannot be served: everything that is wrong with it, at once. */
export class DeclarationError extends Error {
  /** @param {string[]} faults a sentence each */
  constructor(faults) {
    super(`the plugin is declared wrongly: ${faults.join('; ')}`);
    this.name = 'DeclarationError';
    /** What is wrong, a sentence each. @type {readonly string[]} */
    this.faults = faults;
  }
}

/**
 * A failure as it goes over the wire.
 * @param {PluginError} error
 * @returns {RpcError}
 */
export function toRpc(error) {
  /** @type {NonNullable<RpcError['data']>} */
  const data = {};
  if (Object.hasOwn(error, 'name')) data.name = error.name;
  if (error.hint !== undefined) data.hint = error.hint;
  if (error.retryable) data.retryable = true;
  const cause = failedCall(error);
  if (cause !== undefined) data.cause = cause;
  /** @type {RpcError} */
  const rpc = { code: error.code, message: clip(error.message) };
  if (Object.keys(data).length > 0) rpc.data = data;
  return rpc;
}

/**
 * What the host said, as a failure to throw.
 * @param {RpcError} rpc
 */
export function fromRpc({ code, message, data }) {
  const { name, hint, retryable, cause } = data ?? {};
  const error = new PluginError(undefined, message ?? '', { hint, retryable: retryable === true, cause, code });
  // As it came: a host's name is not for us to refuse.
  if (name !== undefined) error.name = name;
  return error;
}

/** A fault that is found here: its words are no author's, and callers may see them. */
export class FaultFound extends TypeError {}

/** Something of the SDK was used as it cannot be, by what failed. */
export class Misuse extends FaultFound {}

/** A failure was given a name that is none; callers are told what its author wrote all the same. */
class BadName extends FaultFound {
  /**
   * @param {unknown} name
   * @param {string} message
   */
  constructor(name, message) {
    super(`"${name}" is not a failure's name: ${NAME_RULE}${nearestName(name)}`);
    this.name = 'TypeError';
    /** What a caller is told. */
    this.told = `${message}; a fault in the plugin: "${name}" is not a failure's name`;
  }
}

/**
 * A fault as its caller may see it: by its class. Its message may quote what is not for callers.
 * @param {string} what has failed
 * @param {unknown} thrown
 * @returns {RpcError}
 */
export function faultToRpc(what, thrown) {
  if (thrown instanceof BadName) return { code: CODE.fault, message: clip(thrown.told) };
  if (thrown instanceof Misuse) return { code: CODE.fault, message: clip(`${what} failed: ${thrown.message}`) };
  if (thrown instanceof FaultFound) return { code: CODE.fault, message: clip(thrown.message) };
  return { code: CODE.fault, message: `${what} failed unexpectedly: it threw ${classOf(thrown)}` };
}

/**
 * A fault of a hook as an operator sees it: why the plugin does not start, on one line.
 * @param {unknown} thrown
 * @returns {RpcError}
 */
export function reasonToRpc(thrown) {
  let text = thrown instanceof Error ? thrown.message || thrown.name : `the plugin threw ${String(thrown)}`;
  if (thrown instanceof BadName) text = `${thrown.told}: ${NAME_RULE}`;
  return { code: CODE.fault, message: clip(text.replace(/\s+/g, ' ').trim()) };
}

/** @param {unknown} thrown */
function classOf(thrown) {
  if (!(thrown instanceof Error)) return thrown === null ? 'null' : typeof thrown;
  return /^[A-Za-z_$][\w$]{0,63}$/.test(thrown.name) ? thrown.name : 'Error';
}

/**
 * Everything there is to say about a fault, for the log.
 * @param {unknown} thrown
 */
export function stackOf(thrown) {
  return thrown instanceof Error ? (thrown.stack ?? String(thrown)) : `the plugin threw ${String(thrown)}`;
}

/**
 * The failed `host/call` behind an error, in the host's own form, however often it was wrapped.
 * @param {unknown} error
 */
function failedCall(error) {
  /** @type {any} */
  let cause = error;
  while (cause instanceof Error) cause = cause.cause;
  const isFailedCall = cause !== null && typeof cause === 'object' && 'operation' in cause && 'error' in cause;
  return isFailedCall ? cause : undefined;
}

/** @param {string} text */
function clip(text) {
  return text.length <= MESSAGE_MAX ? text : `${text.slice(0, MESSAGE_MAX - 1)}…`;
}
