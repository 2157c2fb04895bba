/**
 * A host in memory, for an author's tests of a whole plugin.
 *
 * It speaks the real protocol; only the process is missing, and most of the host's validation: arguments
 * arrive as the test gives them, but for keys that nobody declared, which are refused as a host does.
 */

import type { CallOptions, Level, NextAction, Plugin, PluginError } from './index.js';

/** What a test plays around a plugin. */
export interface HostOptions {
  /** The configuration for `init`; its defaults are the plugin's to fill in. */
  readonly config?: object;
  /** The plugin's folder; the system's for temporary files unless said. */
  readonly dataDir?: string;
  /** How many milliseconds each call has; 30,000 unless said. */
  readonly deadlineMs?: number;
  /**
   * Plays other plugins: what they answer, by `plugin.operation`. A function gives data, a `Reply`, or a
   * promise of either; to fail it throws a `PluginError`.
   */
  readonly calls?: { readonly [operation: string]: (args: any) => unknown };
  /**
   * Plays the person behind the calls: what they answer, by the question's name (`answer` unless it has
   * one). A `PluginError` thrown is the host's; without answers there is nobody to ask.
   */
  readonly answers?: ((name: string, prompt: string) => unknown) | { readonly [name: string]: unknown };
}

/** Runs a plugin within a test and calls it. */
export class Host {
  /** Takes a plugin in; it is described and initialised at the first call. */
  constructor(plugin: Plugin<any, any>, options?: HostOptions);
  /** Describes and initialises the plugin, once. Throws why it does not start. */
  start(): Promise<void>;
  /** What the plugin declares. */
  manifest(): Promise<any>;
  /** Calls an operation and waits for its end; the reply also tells of a failure. */
  call(operation: string, args?: object, options?: CallOptions): Promise<TestReply>;
  /** Calls an operation without waiting for its end. */
  begin(operation: string, args?: object, options?: CallOptions): Promise<RunningCall>;
  /** Gives the plugin a changed configuration. Throws what its `reload` says. */
  reload(config: object): Promise<void>;
  /** Tells the plugin to shut down and waits until it has. Throws what its `shutdown` says. */
  shutdown(): Promise<void>;
}

/** How a call went. */
export class TestReply {
  private constructor();
  /** The data of a call that went well. Throws the failure of one that did not. */
  get data(): any;
  /** Its failure, if it failed. */
  readonly error: PluginError | undefined;
  /** Its one line. */
  get summary(): string | undefined;
  /** What it offers to do next. */
  get nextActions(): readonly NextAction[];
  /** What was logged under its id. */
  readonly logs: readonly { level: Level; message: string; traceId?: string }[];
  /** How far it said it was. */
  readonly progress: readonly { done: number; total?: number; message?: string }[];
  /** Pieces sent ahead. */
  readonly partials: readonly unknown[];
  /** Whether it has ended. */
  readonly isOver: boolean;
}

/** A call under way. */
export class RunningCall {
  private constructor();
  /** Tells the plugin to stop. */
  cancel(): void;
  /** Waits until the call said it was as far as `done`. Throws when it ends before. */
  reached(done: number): Promise<void>;
  /** Waits for the call's end. */
  ended(): Promise<TestReply>;
}
