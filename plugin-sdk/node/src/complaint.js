/** @file What goes wrong, told on stderr: for those who run the plugin, not for its callers. */

import { faultToRpc, PluginError, reasonToRpc, stackOf, toRpc } from './error.js';

/**
 * Says something on stderr.
 * @param {string} text
 */
export function complain(text) {
  process.stderr.write(`${text}\n`);
}

/**
 * The failure of a call for the wire; one that is not in the plugin's own words is told on stderr as well.
 * @param {unknown} error
 * @param {string} operation
 * @param {string} callId
 */
export function failure(error, operation, callId) {
  if (error instanceof PluginError) return toRpc(error);
  complain(`${operation}, call ${callId}, failed: ${stackOf(error)}`);
  return faultToRpc(operation, error);
}

/**
 * As `failure`, of a hook: operators are told why.
 * @param {unknown} error
 * @param {string} hook
 */
export function hookFailure(error, hook) {
  if (error instanceof PluginError) return toRpc(error);
  complain(`${hook} failed: ${stackOf(error)}`);
  return reasonToRpc(error);
}
