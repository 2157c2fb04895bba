/** @file What goes wrong, told on stderr: for those who run the plugin, not for its callers. */

import { faultToRpc, PluginError, stackOf, toRpc } from './error.js';

/**
 * Says something on stderr.
 * @param {string} text
 */
export function complain(text) {
  process.stderr.write(`${text}\n`);
}

/**
 * A failure for the wire; one that is not in the plugin's own words is told on stderr as well.
 * @param {unknown} error
 * @param {string} where
 */
export function failure(error, where) {
  if (error instanceof PluginError) return toRpc(error);
  complain(`${where} failed: ${stackOf(error)}`);
  return faultToRpc(error);
}
