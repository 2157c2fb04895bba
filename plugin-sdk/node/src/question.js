/** @file Questions to the person behind a call, and their answers. */

import { PluginError } from './error.js';
import { refuseUnknown } from './names.js';
import { isStandard, schemaOf, validate } from './schema.js';

/**
 * What an answer has to be: the name of a JSON type, a JSON Schema, or a schema of zod and its like.
 * @typedef {'string' | 'integer' | 'number' | 'boolean' | object} AnswerSchema
 */

/**
 * One of several questions.
 * @typedef {object} Question
 * @property {string} prompt the question, on one line
 * @property {AnswerSchema} [schema] of the answer; any text if absent
 * @property {boolean} [secret] whether the answer is not shown while it is typed, and never logged
 */

/**
 * A question as it goes over the wire.
 * @param {string} name
 * @param {string | Question} question
 */
export function toQuestion(name, question) {
  if (typeof question !== 'string') refuseUnknown(`the question ${name}`, question, ['prompt', 'schema', 'secret']);
  const { prompt, schema, secret } = typeof question === 'string' ? { prompt: question } : question;
  /** @type {{name: string, schema?: object, prompt: string, sensitive?: boolean}} */
  const asked = { name, prompt };
  if (schema !== undefined) asked.schema = typeof schema === 'string' ? { type: schema } : schemaOf(schema, 'input');
  if (secret) asked.sensitive = true;
  return asked;
}

/**
 * The answer to a question; what is wrong with one is told without its words, which may be secret.
 * @param {string} name
 * @param {string | Question} question
 * @param {Record<string, unknown> | undefined} answers
 * @returns {Promise<unknown>}
 */
export async function readAnswer(name, question, answers) {
  const unexpected = () => new PluginError('unexpected_reply', `the answer to ${name} is not of the expected form`);
  if (answers === null || typeof answers !== 'object' || !Object.hasOwn(answers, name)) throw unexpected();
  const schema = typeof question === 'string' ? undefined : question.schema;
  if (!isStandard(schema)) return answers[name];
  const { value, issues } = await validate(schema, answers[name]);
  if (issues) throw unexpected();
  return value;
}
