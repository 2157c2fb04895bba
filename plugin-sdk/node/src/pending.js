/** @file How many requests are at work, and waiting for them to be fewer. */

/** Counts requests at work. */
export class Pending {
  #count = 0;
  /** Told when the count falls. @type {Set<() => void>} */
  #watchers = new Set();

  /** One more is at work. */
  begin() {
    this.#count += 1;
  }

  /** One has been answered. */
  end() {
    this.#count -= 1;
    for (const told of this.#watchers) told();
  }

  /**
   * Waits until at most so many are at work, but only for so many milliseconds.
   * @param {number} most
   * @param {number} ms
   * @returns {Promise<void>}
   */
  isAtMost(most, ms) {
    if (this.#count <= most) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve();
      };
      const look = () => {
        if (this.#count <= most) end();
      };
      const timer = setTimeout(end, ms);
      this.#watchers.add(look);
    });
  }
}
