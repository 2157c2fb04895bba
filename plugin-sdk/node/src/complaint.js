/** @file What goes wrong, told on stderr or in the log: for those who run the plugin, not for its callers. */

import { faultToRpc, PluginError, reasonToRpc, stackOf, toRpc } from './error.js';

/**
 * Says something on stderr.
 * @param {string} text
 */
export function complain(text) {
  process.stderr.write(`${text}\n`);
}

/**
 * The same of a conversation, on a line of its own whatever was printed before.
 * @param {string} text
 */
export function remark(text) {
  // Of a line that is not begun nothing is to be seen in the log.
  complain(`\n${text}`);
}

/** @typedef {(text: string) => void} Tell takes what is for the log */

/**
 * The failure of a call for the wire; one that is not in the plugin's own words is told as well.
 * @param {unknown} error
 * @param {string} operation
 * @param {Tell} tell
 */
export function failure(error, operation, tell) {
  if (error instanceof PluginError) return toRpc(error);
  tell(`${operation} failed: ${stackOf(error)}`);
  return faultToRpc(operation, error);
}

/**
 * As `failure`, of a hook: operators are told why.
 * @param {unknown} error
 * @param {string} hook
 * @param {Tell} tell
 */
export function hookFailure(error, hook, tell) {
  if (error instanceof PluginError) return toRpc(error);
  tell(`${hook} failed: ${stackOf(error)}`);
  return reasonToRpc(error);
}
