/** @file The plugin as a process: its arguments, its terminal, its standard streams, its end. */

import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';

import { complain } from './complaint.js';
import { redirectConsole } from './console.js';
import { DeclarationError, stackOf } from './error.js';
import { Session } from './session.js';
import { takeStreams } from './stdio.js';
import { usage } from './usage.js';

/** @typedef {import('./plugin.js').Running} Running */

/** The exit status that means: starting me again would not help. */
const EXIT_PERMANENT = 125;

/** The exit status of a plugin that was started by hand. */
const EXIT_BY_HAND = 2;

/** Handlers that look whether they are cancelled have the input looked at every so many milliseconds. */
const LOOK_INTERVAL = 1;

/**
 * Runs a plugin in this process, unless `meta` is that of a module that another one imports.
 * @param {() => Running} load gives the plugin, or throws what is wrong with it
 * @param {{url: string}} [meta]
 */
export function serve(load, meta) {
  if (meta !== undefined && !isMain(meta.url)) return;
  let plugin;
  try {
    plugin = load();
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    complain(['the plugin is declared wrongly:', ...error.faults].join('\n  '));
    process.exit(EXIT_PERMANENT);
  }
  const { manifest } = plugin;
  switch (process.argv[2]) {
    case '--describe':
      return console.log(JSON.stringify(manifest, null, 2));
    case '--version':
    case '-V':
      return console.log(`${manifest.name} ${manifest.version}`);
    case '--help':
    case '-h':
      return console.log(usage(manifest));
  }
  if (isatty(0)) {
    complain(usage(manifest));
    process.exit(EXIT_BY_HAND);
  }
  converse(plugin);
}

/** @param {Running} plugin */
function converse(plugin) {
  const { input, write } = takeStreams();
  let lookedAt = 0;
  const transport = {
    /** @param {string} line */
    write(line) {
      try {
        write(line);
      } catch {
        // Nobody reads a broken pipe again.
        process.exit(0);
      }
    },
    leave: () => process.exit(0),
    look() {
      const now = performance.now();
      if (now - lookedAt < LOOK_INTERVAL) return;
      lookedAt = now;
      input.look((buffer, length) => session.lookAhead(buffer, length), end);
      session.leaveIfOver();
    },
  };
  // It costs a little with every promise, so only where calls could be mistaken for each other.
  const session = new Session(plugin, transport, plugin.lanes > 1 ? new AsyncLocalStorage() : undefined);
  const end = () => void session.end();
  redirectConsole((level, message) => session.log(level, message));
  surviveFaults(session);
  input.listen((buffer, length) => session.receive(buffer, length), end);
}

/**
 * What nobody caught ends no process in which calls may be under way: it is logged, and the call it
 * belongs to, if that is known, fails. A rejection that nobody handles fails none.
 * @param {Session} session
 */
function surviveFaults(session) {
  process.on('uncaughtException', (thrown) => {
    session.log('error', `an exception that nobody caught: ${stackOf(thrown)}`);
    session.failCurrent(thrown);
  });
  process.on('unhandledRejection', (thrown) => {
    session.log('error', `a rejection that nobody handled: ${stackOf(thrown)}`);
  });
}

/**
 * Whether a module is the program that was started.
 * @param {string} url
 */
function isMain(url) {
  const started = process.argv[1];
  if (started === undefined || !url.startsWith('file:')) return false;
  const module = fs.realpathSync(fileURLToPath(url));
  // As Node does, which takes the name of a program without its ending, or of its folder.
  return ['', '.js', '.mjs', '/index.js'].some((ending) => {
    try {
      return fs.realpathSync(started + ending) === module;
    } catch {
      return false;
    }
  });
}
