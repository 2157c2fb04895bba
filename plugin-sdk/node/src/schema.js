/** @file The ways to write a schema down, and what becomes of each in the manifest and in a call. */

import { CODE, PluginError } from './error.js';

/** A JSON Schema. @typedef {{[keyword: string]: any}} JsonSchema */

/**
 * A schema of a library that follows the Standard Schema specification: zod, ArkType, Valibot.
 * @typedef {{'~standard': StandardMembers}} Standard
 */

/**
 * @typedef {object} StandardMembers
 * @property {string} vendor the library
 * @property {(value: unknown) => any} validate gives `{value}` or `{issues}`, or a promise of it
 * @property {Record<'input' | 'output', (options: object) => JsonSchema>} [jsonSchema]
 */

/** How values are read before the plugin's code sees them. @typedef {(value: any) => any} Read */

const DRAFT = 'draft-2020-12';

/**
 * Reads how arguments or a configuration are declared.
 * @param {any} given a map of properties, a JSON Schema, or a schema of zod and its like
 * @param {string} what its name, for complaints
 * @param {string} misfit the name of the failure of values that do not fit
 * @returns {{schema: JsonSchema, read: Read}} what the manifest says; how values are read (maybe by a promise)
 * @throws {TypeError} when it is none of these, or no schema of an object
 */
export function inputOf(given, what, misfit) {
  const written = schemaOf(given, 'input');
  const schema = written.type === undefined ? { type: 'object', ...written } : written;
  if (schema.type !== 'object') throw new TypeError(`${what} is no object: name each parameter under "properties"`);
  if (isStandard(given)) return { schema: closedIfEmpty(schema), read: reading(given, what, misfit) };
  // What an author wrote as JSON Schema stays as it is.
  const declared = isJsonSchema(given) ? schema : closedIfEmpty(schema);
  return { schema: declared, read: fillingIn(schema.properties ?? {}) };
}

/**
 * The JSON Schema of any way to write one.
 * @param {any} given
 * @param {'input' | 'output'} side what goes in or comes out, where the two differ
 * @returns {JsonSchema}
 * @throws {TypeError}
 */
export function schemaOf(given, side) {
  if (isStandard(given)) return jsonSchemaOf(given, side);
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw new TypeError('expected a map of properties, a JSON Schema or a zod schema');
  }
  if (isOfZod3(given)) throw new TypeError("zod 3 cannot say its JSON Schema: upgrade to zod 4.2, or import 'zod/v4'");
  return isJsonSchema(given) ? given : objectOf(given);
}

/**
 * @param {any} given
 * @returns {given is Standard}
 */
export function isStandard(given) {
  const holdsOne = (typeof given === 'object' && given !== null) || typeof given === 'function';
  return holdsOne && typeof given['~standard']?.validate === 'function' && !isOfZod3(given);
}

/**
 * Has a library read a value.
 * @param {Standard} schema
 * @param {unknown} value
 * @returns {any} `{value}` or `{issues}`, or a promise of it
 */
export function validate(schema, value) {
  return schema['~standard'].validate(value);
}

/** @param {any} given */
function isOfZod3(given) {
  return given?._def?.typeName !== undefined && given._zod === undefined;
}

/**
 * A map of properties has a schema under each name, a JSON Schema something else under some keyword.
 * @param {JsonSchema} given
 */
function isJsonSchema(given) {
  const isText = (/** @type {string} */ keyword) => typeof given[keyword] === 'string';
  const isList = (/** @type {string} */ keyword) => Array.isArray(given[keyword]);
  return ['type', '$ref', '$schema'].some(isText) || ['type', 'enum', 'anyOf', 'oneOf', 'allOf'].some(isList);
}

/**
 * The object that has these properties; each is required unless it is optional or has a default.
 * @param {Record<string, JsonSchema>} given
 * @returns {JsonSchema}
 */
function objectOf(given) {
  /** @type {Record<string, JsonSchema>} */
  const properties = {};
  const required = [];
  for (const [name, property] of Object.entries(given)) {
    if (property === null || typeof property !== 'object') {
      throw new TypeError(`${name}: expected a JSON Schema such as {type: 'string'}, found ${String(property)}`);
    }
    const { optional = false, ...schema } = property;
    properties[name] = schema;
    if (!optional && !Object.hasOwn(schema, 'default')) required.push(name);
  }
  return required.length > 0 ? { type: 'object', properties, required } : { type: 'object', properties };
}

/**
 * The schema of no parameters says so, for a host takes any key where no property is listed.
 * @param {JsonSchema} schema
 * @returns {JsonSchema}
 */
function closedIfEmpty(schema) {
  const isPlain = Object.keys(schema).every((keyword) => ['type', 'properties', 'description'].includes(keyword));
  const isEmpty = schema.properties !== undefined && Object.keys(schema.properties).length === 0;
  return isPlain && isEmpty ? { ...schema, additionalProperties: false } : schema;
}

/**
 * @param {Standard} given
 * @param {'input' | 'output'} side
 * @returns {JsonSchema}
 */
function jsonSchemaOf(given, side) {
  const { vendor, jsonSchema } = given['~standard'];
  if (jsonSchema === undefined) {
    throw new TypeError(`this ${vendor} schema cannot say its JSON Schema: upgrade ${vendor} (zod to 4.2 or later)`);
  }
  const { $schema: _, ...schema } = jsonSchema[side]({ target: DRAFT });
  return withoutNumberWidths(schema);
}

/**
 * Takes out what only JavaScript means by it: that an integer is a safe one.
 * @param {any} schema
 * @returns {any}
 */
function withoutNumberWidths(schema) {
  if (Array.isArray(schema)) return schema.map(withoutNumberWidths);
  if (schema === null || typeof schema !== 'object') return schema;
  const isWidth = (/** @type {[string, unknown]} */ [keyword, value]) =>
    (keyword === 'minimum' && value === Number.MIN_SAFE_INTEGER) ||
    (keyword === 'maximum' && value === Number.MAX_SAFE_INTEGER);
  const kept = Object.entries(schema).filter((entry) => !isWidth(entry));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutNumberWidths(value)]));
}

/**
 * Reads by filling in what was left out: hosts do so as well, tests and other hosts may not.
 * @param {Record<string, JsonSchema>} properties
 * @returns {Read}
 */
function fillingIn(properties) {
  const defaults = Object.entries(properties).filter(([, schema]) => Object.hasOwn(Object(schema), 'default'));
  if (defaults.length === 0) return (value) => value;
  return (value) => {
    for (const [name, { default: missing }] of defaults) {
      if (value[name] === undefined) value[name] = typeof missing === 'object' ? structuredClone(missing) : missing;
    }
    return value;
  };
}

/**
 * Reads as the library does, with its defaults and conversions.
 * @param {Standard} schema
 * @param {string} what
 * @param {string} misfit the name of the failure of values that do not fit
 * @returns {Read}
 */
function reading(schema, what, misfit) {
  /** @param {{value?: unknown, issues?: readonly Issue[]}} outcome */
  const valueOf = ({ value, issues }) => {
    if (issues === undefined) return value;
    const told = issues.map(({ path = [], message }) => [pathToText(path), message].filter(Boolean).join(': '));
    throw new PluginError(misfit, `${what} does not fit: ${told.join('; ')}`, {
      code: CODE.invalidParams,
    });
  };
  return (value) => {
    const outcome = validate(schema, value);
    return outcome instanceof Promise ? outcome.then(valueOf) : valueOf(outcome);
  };
}

/** @typedef {{message: string, path?: readonly (PropertyKey | {key: PropertyKey})[]}} Issue */

/** @param {readonly (PropertyKey | {key: PropertyKey})[]} path */
function pathToText(path) {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
}
