/** @file Names: what operations and failures are called, and what a misspelt one may have meant. */

/** What a name is, in words. */
export const NAME_RULE = 'expected 1 to 64 of a-z, 0-9 and _';

/** The most letters by which a misspelt option differs from the one that was meant. */
const SLIPS_MAX = 2;

/** @param {unknown} name whether it is the name of an operation or of a failure */
export function isName(name) {
  return typeof name === 'string' && /^[a-z0-9_]{1,64}$/.test(name);
}

/**
 * The nearest legal spelling of a name, as the end of a sentence; empty where there is none.
 * @param {unknown} name
 */
export function nearestName(name) {
  const nearest = snakeCase(String(name))
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
  return isName(nearest) && nearest !== String(name) ? `; did you mean "${nearest}"?` : '';
}

/**
 * The one of some options that a misspelt one may have meant, as the end of a sentence.
 * @param {string} given
 * @param {readonly string[]} known
 */
export function nearestOption(given, known) {
  const told = plain(given);
  const distances = known.map((name) => slips(told, plain(name)));
  const least = Math.min(...distances);
  const isNear = least <= SLIPS_MAX && least < told.length / 2;
  return isNear ? `; did you mean "${known[distances.indexOf(least)]}"?` : '';
}

/**
 * Throws where something has a member that nobody would read.
 * @param {string} what whose members they are
 * @param {object | undefined} given
 * @param {readonly string[]} known
 */
export function refuseUnknown(what, given, known) {
  for (const name in given) {
    if (known.includes(name)) continue;
    throw new TypeError(`${what}: there is no option "${name}"${nearestOption(name, known)}`);
  }
}

/** @param {string} name */
export function snakeCase(name) {
  return name.replace(/(?<=.)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

/** @param {string} name */
function plain(name) {
  return name.replace(/[_-]|Schema$/gi, '').toLowerCase();
}

/**
 * How many letters were left out, put in, changed or swapped.
 * @param {string} one
 * @param {string} other
 */
function slips(one, other) {
  /** @type {number[][]} */
  const table = [];
  for (let i = 0; i <= one.length; i += 1) {
    table.push([i]);
    for (let j = 1; j <= other.length; j += 1) {
      if (i === 0) table[i][j] = j;
      else table[i][j] = least(i, j);
    }
  }
  return table[one.length][other.length];

  /** @param {number} i @param {number} j */
  function least(i, j) {
    const change = one[i - 1] === other[j - 1] ? 0 : 1;
    const ways = [table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + change];
    const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
    if (isSwap) ways.push(table[i - 2][j - 2] + 1);
    return Math.min(...ways);
  }
}
