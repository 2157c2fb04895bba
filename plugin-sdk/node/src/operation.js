/** @file One operation: what is declared about it, and the function that it runs. */

import { isName, NAME_RULE, nearestName, nearestOption, snakeCase } from './names.js';
import { inputOf, schemaOf } from './schema.js';

/**
 * @typedef {object} Operation
 * @property {string} name
 * @property {object} declared its entry in the manifest
 * @property {import('./schema.js').Read} read reads the arguments
 * @property {(args: any, context: any) => unknown} handler
 */

/** @typedef {(value: unknown) => string | undefined} Check what was expected, where a value is something else */

/** @type {Check} */
const text = (value) => (typeof value === 'string' ? undefined : 'a text');
/** @type {Check} */
const flag = (value) => (typeof value === 'boolean' ? undefined : 'true or false');
/** @type {Check} */
const count = (value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : 'a whole number');
/** @type {Check} */
const texts = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? undefined : 'a list of texts';
/** @type {(...words: string[]) => Check} */
const oneOf =
  (...words) =>
  (value) =>
    words.includes(/** @type {string} */ (value)) ? undefined : words.map((word) => `"${word}"`).join(' or ');

/** Members of the manifest's entry that are written as given, in the order of the protocol's page. */
const BEFORE_SCHEMAS = {
  title: text,
  description: text,
  whenToUse: text,
  whenNotToUse: text,
  examples: texts,
  category: text,
  audience: oneOf('callers', 'plugins'),
};
const EFFECTS = { readOnly: flag, destructive: flag, idempotent: flag, openWorld: flag };
const AFTER_SCHEMAS = {
  timeoutMs: count,
  stallTimeoutMs: count,
  longRunning: flag,
  confirm: oneOf('auto', 'always', 'never'),
  scope: text,
  cacheTtl: count,
  resultLimit: count,
};
/** @type {Record<string, Check>} */
const OPTIONS = {
  ...BEFORE_SCHEMAS,
  ...EFFECTS,
  ...AFTER_SCHEMAS,
  input: () => undefined,
  output: () => undefined,
};

/**
 * Reads the declaration of an operation.
 * @param {string} name
 * @param {Record<string, any>} options
 * @param {Operation['handler']} handler
 * @param {string[]} faults takes a sentence for each thing that is wrong
 * @returns {Operation}
 */
export function declare(name, options, handler, faults) {
  if (!isName(name)) faults.push(`"${name}" is not an operation name: ${NAME_RULE}${nearestName(name)}`);
  if (typeof handler !== 'function') faults.push(`${name}: expected a function behind the options`);
  checkOptions(name, options, OPTIONS, faults);
  const given = options ?? {};
  const { schema, read } = readInput(name, given.input ?? {}, faults);
  /** @type {Record<string, unknown>} */
  const declared = { name, ...members(given, BEFORE_SCHEMAS), input_schema: schema };
  if (given.output !== undefined) declared.output_schema = readOutput(name, given.output, faults);
  const effects = members(given, EFFECTS);
  if (Object.keys(effects).length > 0) declared.effects = effects;
  Object.assign(declared, members(given, AFTER_SCHEMAS));
  return { name, declared, read, handler };
}

/**
 * Finds options that are misspelt or of the wrong type.
 * @param {string} what whose options they are
 * @param {Record<string, unknown>} options
 * @param {Record<string, Check>} known
 * @param {string[]} faults
 */
export function checkOptions(what, options, known, faults) {
  for (const [option, value] of Object.entries(options ?? {})) {
    const check = Object.hasOwn(known, option) ? known[option] : undefined;
    if (check === undefined) {
      faults.push(`${what}: there is no option "${option}"${nearestOption(option, Object.keys(known))}`);
    } else if (value !== undefined) {
      const expected = check(value);
      if (expected) faults.push(`${what}: ${option} is to be ${expected}`);
    }
  }
}

/**
 * @param {string} name
 * @param {unknown} given
 * @param {string[]} faults
 */
function readInput(name, given, faults) {
  try {
    return inputOf(given, `the input of ${name}`, 'invalid_arguments');
  } catch (error) {
    faults.push(`${name}: input: ${messageOf(error)}`);
    return { schema: {}, read: (/** @type {unknown} */ value) => value };
  }
}

/**
 * @param {string} name
 * @param {unknown} given
 * @param {string[]} faults
 */
function readOutput(name, given, faults) {
  try {
    return schemaOf(given, 'output');
  } catch (error) {
    faults.push(`${name}: output: ${messageOf(error)}`);
    return undefined;
  }
}

/**
 * The options among `wanted` that were given, under their names in the manifest.
 * @param {Record<string, unknown>} options
 * @param {Record<string, unknown>} wanted
 */
function members(options, wanted) {
  /** @type {Record<string, unknown>} */
  const found = {};
  for (const name of Object.keys(wanted)) {
    if (options[name] !== undefined) found[snakeCase(name)] = options[name];
  }
  return found;
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
