/** @file The language's own way to log: `console` goes to the plugin's log, with a level. */

import { Console } from 'node:console';

/** @typedef {import('./wire.js').Level} Level */

/** The levels of the console's methods; the others are told at `info`. @type {Record<string, Level>} */
const LEVELS = { trace: 'debug', debug: 'debug', warn: 'warn', assert: 'warn', error: 'error' };

/**
 * Has `console` write to a log instead of the standard streams; formats, groups and tables as ever.
 * @param {(level: Level, message: string) => void} log
 */
export function redirectConsole(log) {
  /** @type {Level} */
  let level = 'info';
  const sink = { write: (/** @type {string} */ text) => log(level, text.replace(/\n$/, '')) };
  const inner = new Console({
    stdout: /** @type {any} */ (sink),
    stderr: /** @type {any} */ (sink),
    ignoreErrors: false,
  });
  for (const [name, method] of Object.entries(inner)) {
    if (typeof method !== 'function' || name === 'Console') continue;
    Reflect.set(console, name, (/** @type {unknown[]} */ ...args) => {
      level = LEVELS[name] ?? 'info';
      return method.apply(inner, args);
    });
  }
}
