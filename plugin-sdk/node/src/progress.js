/** @file How far something is, as handlers say it. */

import { Misuse } from './error.js';

/**
 * Throws where what is said of progress is not of its form, with the way to write it.
 * @param {unknown} done
 * @param {unknown} total
 * @param {unknown} message
 */
export function checkProgress(done, total, message) {
  /** @param {string} what @param {unknown} value which may be a secret */
  const refuse = (what, value) => {
    const isOdd = typeof value === 'number' && !Number.isFinite(value);
    const kind = isOdd || value === null ? String(value) : `of the type ${typeof value}`;
    const how = "such as progress(3, 10, 'reading') or progress(0.5, 1, 'reading')";
    throw new Misuse(`progress takes two numbers and a text, ${how}: ${what} is ${kind}`);
  };
  if (!isNumber(done)) refuse('done', done);
  if (total !== undefined && total !== null && !isNumber(total)) refuse('total', total);
  if (message !== undefined && typeof message !== 'string') refuse('the message', message);
}

/** @param {unknown} value */
function isNumber(value) {
  return Number.isFinite(value) || typeof value === 'bigint';
}
