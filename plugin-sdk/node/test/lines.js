/** @file Lines that come, and whoever waits for them. */

/** No line takes so many milliseconds, not even on a loaded machine. */
const PATIENCE = 20_000;

/** Splits text into lines and hands them out one after the other. */
export class Lines {
  #rest = '';
  #lines = [];
  #waiting = [];

  /** @param {string} text */
  push(text) {
    const lines = text.split('\n');
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) {
      const waiting = this.#waiting.shift();
      if (waiting) waiting(line);
      else this.#lines.push(line);
    }
  }

  /** The next line. @returns {Promise<string>} */
  next() {
    if (this.#lines.length > 0) return Promise.resolve(this.#lines.shift());
    return withinPatience('a line', new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /** What has come and nobody has taken. */
  get left() {
    return [...this.#lines, this.#rest].filter((line) => line !== '');
  }
}

/**
 * Waits, but not for ever.
 * @template T
 * @param {string} what
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export function withinPatience(what, promise) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} did not come within ${PATIENCE} ms`)), PATIENCE);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
