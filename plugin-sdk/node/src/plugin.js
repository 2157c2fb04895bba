/** @file A plugin: what it is, what it opens, and the operations it offers. */

import { DeclarationError } from './error.js';
import { checkOptions, declare, messageOf } from './operation.js';
import { serve } from './process.js';
import { inputOf } from './schema.js';

/** The version of the protocol that is spoken here. */
export const PROTOCOL_VERSION = 1;

/** The most calls that a plugin may take at once. */
const CONCURRENCY_MAX = 256;

const PLUGIN_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/;

/** A comparator such as `>=1.0`. */
const COMPARATOR = /^([<>]=?|[=^~])?\s*\d+(\.(\d+|\*|x)){0,2}([-+][\w.+-]+)?$/;

/** @typedef {import('./operation.js').Operation} Operation */

/**
 * Begins a plugin; say what it offers with `operation`, then hand over to `serve`.
 * @param {string} name
 * @param {string} version by preference semver
 * @param {Record<string, any>} [options]
 */
export function plugin(name, version, options = {}) {
  return new Plugin(name, version, options);
}

/**
 * What runs behind a plugin's manifest; throws where it is declared wrongly. @type {(plugin: Plugin) => Running}
 */
export let running;

/** A whole plugin. The page of the package shows one. */
export class Plugin {
  #name;
  #version;
  #options;
  /** @type {Operation[]} */
  #operations = [];
  /** @type {Hooks} */
  #hooks = {};
  /** @type {import('./schema.js').Read} */
  #readConfig = (config) => config;
  /** @type {object | undefined} */
  #configSchema;
  /** What is wrong with the declaration. @type {string[]} */
  #faults = [];

  /**
   * @param {string} name
   * @param {string} version
   * @param {Record<string, any>} [options]
   */
  constructor(name, version, options = {}) {
    this.#name = name;
    this.#version = version;
    this.#options = options;
    this.#check();
    if (options.config !== undefined) this.#declareConfig(options.config);
  }

  /**
   * Offers an operation.
   * @param {string} name
   * @param {Record<string, any>} options
   * @param {(args: any, context: any) => unknown} handler
   * @returns {this}
   */
  operation(name, options, handler) {
    if (this.#operations.some((operation) => operation.name === name)) this.#faults.push(`${name} is declared twice`);
    this.#operations.push(declare(name, options, handler, this.#faults));
    return this;
  }

  /**
   * Opens, once at the start, what calls need; what it returns is `context.state` from then on.
   *
   * An error disables the plugin, with its message as the reason that people see.
   * @param {(config: any, context: import('./context.js').InitContext) => unknown} hook
   * @returns {any}
   */
  init(hook) {
    return this.#hook('init', hook);
  }

  /**
   * Takes up a changed configuration without a new process, while calls go on.
   *
   * What it returns, if anything, is the new `context.state`. An error leaves the old configuration in
   * use. A plugin with an `init` and without this hook is started anew when its configuration changes;
   * one without either needs none, for its handlers read `context.config`.
   * @param {(config: any, context: import('./context.js').InitContext) => unknown} hook
   * @returns {this}
   */
  reload(hook) {
    return this.#hook('reload', hook);
  }

  /**
   * Releases what the plugin holds, when the host says to shut down.
   *
   * Not when the host is gone: a plugin then leaves at once.
   * @param {(context: import('./context.js').InitContext) => unknown} hook
   * @returns {this}
   */
  shutdown(hook) {
    return this.#hook('shutdown', hook);
  }

  /**
   * The manifest, as `describe` answers it.
   * @returns {any}
   * @throws {DeclarationError} when something is declared wrongly
   */
  manifest() {
    if (this.#faults.length > 0) throw new DeclarationError([...this.#faults]);
    const { description, requires, priority, concurrency = 1, stopsWhenCancelled } = this.#options;
    /** @type {Record<string, unknown>} */
    const features = { ping: true };
    if (concurrency > 1) features.concurrency = concurrency;
    if (stopsWhenCancelled) features.cancel = true;
    if (this.#takesReload()) features.reload = true;
    return {
      protocol: PROTOCOL_VERSION,
      name: this.#name,
      version: this.#version,
      ...(description !== undefined && { description }),
      ...(requires !== undefined && { requires: requirements(requires) }),
      ...(priority !== undefined && { priority }),
      features,
      ...(this.#configSchema && { config_schema: this.#configSchema }),
      operations: this.#operations.map(({ declared }) => declared),
    };
  }

  /**
   * Speaks the protocol over standard input and output until the host is done. The last thing a plugin does.
   *
   * Given `import.meta`, it does so only where that module is the program that was started, so that a
   * test may import it. Run by hand on a terminal it says what it is; `--describe` prints the manifest,
   * `--help` and `--version` do what they do elsewhere. A declaration that is wrong ends it with exit
   * status 125: starting again would not help.
   * @param {{url: string}} [meta]
   * @returns {this}
   */
  serve(meta) {
    serve(() => running(this), meta);
    return this;
  }

  static {
    running = (plugin) => ({
      manifest: plugin.manifest(),
      operations: plugin.#operations,
      hooks: plugin.#hooks,
      lanes: plugin.#options.concurrency ?? 1,
      readConfig: plugin.#readConfig,
    });
  }

  /** Whether a changed configuration can be taken up: by the hook, or since nothing was made of the old one. */
  #takesReload() {
    return this.#hooks.reload !== undefined || (this.#configSchema !== undefined && this.#hooks.init === undefined);
  }

  /**
   * @param {keyof Hooks} name
   * @param {any} hook
   */
  #hook(name, hook) {
    if (typeof hook !== 'function') this.#faults.push(`${name}: expected a function`);
    if (this.#hooks[name]) this.#faults.push(`${name} is given twice`);
    this.#hooks[name] = hook;
    return this;
  }

  #check() {
    const faults = this.#faults;
    if (!PLUGIN_NAME.test(this.#name)) {
      const expected = 'expected 1 to 64 letters, digits, _ or -, beginning with a letter or digit';
      faults.push(`"${this.#name}" is not a plugin name: ${expected}`);
    }
    if (typeof this.#version !== 'string' || this.#version === '') {
      faults.push(`the version of ${this.#name} is to be a text such as "1.0.0"`);
    }
    checkOptions(String(this.#name), this.#options, PLUGIN_OPTIONS, faults);
    for (const [name, required] of Object.entries(requirements(this.#options?.requires))) {
      checkOptions(`requires ${name}`, required, REQUIREMENT, faults);
      if (!PLUGIN_NAME.test(name)) faults.push(`"${name}" is required, and is not a plugin name`);
      if (!isVersionRange(required.version)) {
        faults.push(`${name} is required in "${required.version}", which is no range such as ">=1.0"`);
      }
    }
  }

  /** @param {unknown} given */
  #declareConfig(given) {
    try {
      const { schema, read } = inputOf(given, 'the configuration', 'invalid_config');
      this.#configSchema = schema;
      this.#readConfig = read;
    } catch (error) {
      this.#faults.push(`config: ${messageOf(error)}`);
    }
  }
}

/**
 * @typedef {object} Hooks
 * @property {(config: any, context: import('./context.js').InitContext) => unknown} [init]
 * @property {(config: any, context: import('./context.js').InitContext) => unknown} [reload]
 * @property {(context: import('./context.js').InitContext) => unknown} [shutdown]
 */

/**
 * @typedef {object} Running
 * @property {any} manifest
 * @property {Operation[]} operations
 * @property {Hooks} hooks
 * @property {number} lanes how many calls run at once
 * @property {import('./schema.js').Read} readConfig
 */

/** @type {Record<string, (value: any) => string | undefined>} */
const PLUGIN_OPTIONS = {
  description: (value) => (typeof value === 'string' ? undefined : 'a text'),
  requires: (value) => (value !== null && typeof value === 'object' ? undefined : 'an object of version ranges'),
  priority: (value) => (Number.isSafeInteger(value) ? undefined : 'a whole number'),
  concurrency: (value) =>
    Number.isSafeInteger(value) && value >= 1 && value <= CONCURRENCY_MAX ? undefined : `1 to ${CONCURRENCY_MAX}`,
  stopsWhenCancelled: (value) => (typeof value === 'boolean' ? undefined : 'true or false'),
  config: () => undefined,
};

/** The range itself is looked at apart. @type {Record<string, (value: any) => string | undefined>} */
const REQUIREMENT = {
  version: () => undefined,
  optional: (value) => (typeof value === 'boolean' ? undefined : 'true or false'),
};

/**
 * Whether something is a range of versions: `*`, or comparators separated by commas.
 * @param {unknown} range
 */
function isVersionRange(range) {
  if (typeof range !== 'string') return false;
  return range.trim() === '*' || range.split(',').every((comparator) => COMPARATOR.test(comparator.trim()));
}

/**
 * What is required, in the manifest's long form.
 * @param {any} requires
 * @returns {Record<string, {version: string, optional?: boolean}>}
 */
function requirements(requires) {
  if (requires === null || typeof requires !== 'object') return {};
  /** @param {any} range */
  const long = (range) => {
    if (range === null || typeof range !== 'object') return { version: range };
    return { version: '*', ...range };
  };
  return Object.fromEntries(Object.entries(requires).map(([name, range]) => [name, long(range)]));
}
