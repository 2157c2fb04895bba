/** @file Write a plugd plugin in Node: one function is a whole plugin. The README shows one. */

export { Context, InitContext } from './context.js';
export { DeclarationError, PluginError } from './error.js';
export { Plugin, plugin } from './plugin.js';
export { Reply } from './reply.js';
