/** Write a plugd plugin in Node: one function is a whole plugin. The README shows one. */

// ---------------------------------------------------------------- schemas and the types they stand for

/** A JSON Schema. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** The schema of one parameter, in a map of them. */
export interface Property extends JsonSchema {
  /** Whether it may be left out. A parameter with a `default` may be, too. */
  readonly optional?: boolean;
}

/** A schema of a library that follows the Standard Schema specification: zod 4.2, ArkType, Valibot. */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown, ...rest: any[]) => unknown;
    readonly types?: { readonly input: unknown; readonly output: unknown } | undefined;
  };
}

/**
 * How arguments, a configuration or data are declared: a short map of properties, a JSON Schema, or a
 * schema of zod and its like.
 */
export type Schema = { readonly [property: string]: Property } | JsonSchema | StandardSchema;

type Primitives = { string: string; integer: number; number: number; boolean: boolean; null: null };

type Flat<T> = { [K in keyof T]: T[K] };

/** The names in a map of properties that are there in every call, for they are required or have a default. */
type Present<P> = {
  [K in keyof P]: P[K] extends { readonly default: unknown } ? K : P[K] extends { readonly optional: true } ? never : K;
}[keyof P];

type FromProperties<P, Names extends PropertyKey> = Flat<
  { -readonly [K in keyof P as K extends Names ? K : never]: FromJsonSchema<P[K]> } & {
    -readonly [K in keyof P as K extends Names ? never : K]?: FromJsonSchema<P[K]> | undefined;
  }
>;

type WithDefault<P> = { [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never }[keyof P];

type Required<S> = S extends { readonly required: readonly (infer R extends PropertyKey)[] } ? R : never;

type FromType<T, S> = T extends keyof Primitives
  ? Primitives[T]
  : T extends 'array'
    ? S extends { readonly items: infer I }
      ? FromJsonSchema<I>[]
      : unknown[]
    : T extends 'object'
      ? S extends { readonly properties: infer P }
        ? FromProperties<P, Required<S> | WithDefault<P>>
        : Record<string, unknown>
      : unknown;

/**
 * What a JSON Schema stands for.
 *
 * An `integer` is a `number`. One beyond `Number.MAX_SAFE_INTEGER` comes as a `bigint`, so that no digit is
 * lost: give it a `maximum` where you do not expect that.
 */
export type FromJsonSchema<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer B)[] } | { readonly oneOf: readonly (infer B)[] }
      ? FromJsonSchema<B>
      : S extends { readonly type: readonly (infer T)[] }
        ? FromType<T, S>
        : S extends { readonly type: infer T }
          ? FromType<T, S>
          : unknown;

/** What a `Schema` stands for: the type of a handler's arguments, of a configuration, of data. */
export type Infer<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O }
    ? O
    : unknown
  : S extends { readonly type: string | readonly string[] } | { readonly $ref: string } | { readonly $schema: string }
    ? FromJsonSchema<S>
    : S extends
          | { readonly anyOf: readonly unknown[] }
          | { readonly oneOf: readonly unknown[] }
          | { readonly enum: readonly unknown[] }
      ? FromJsonSchema<S>
      : S extends { readonly allOf: readonly unknown[] }
        ? any
        : FromProperties<S, Present<S>>;

// ---------------------------------------------------------------- plugins

/** A plugin used by another: a version range, or more about it. */
export type Requirement =
  | string
  | {
      /** Comparators separated by commas, such as `>=1.0, <3`; any version if absent. */
      readonly version?: string;
      /** Whether the plugin works without it. */
      readonly optional?: boolean;
    };

/** What is said about a plugin. */
export interface PluginOptions<C extends Schema = {}> {
  /** What the plugin is, in a sentence or two. */
  readonly description?: string;
  /** Plugins that this one uses, with the versions that will do. */
  readonly requires?: { readonly [plugin: string]: Requirement };
  /** Among plugins that could start together, larger starts first. */
  readonly priority?: number;
  /** How many calls it takes at once, 1 to 256; 1 unless said. They share the event loop. */
  readonly concurrency?: number;
  /** Promises that handlers look at `context.cancelled` or `context.signal` and stop early. */
  readonly stopsWhenCancelled?: boolean;
  /** The configuration: what may stand in `[plugins.NAME.config]` of plugd.toml. */
  readonly config?: C;
}

/** What is declared about an operation. Only `description` should never be missing. */
export interface OperationOptions<I extends Schema = {}, O extends Schema = JsonSchema> {
  /** A short title for people. */
  readonly title?: string;
  /** What it does, and what is special about its parameters. Two sentences or more. */
  readonly description?: string;
  /** When it is the right choice. */
  readonly whenToUse?: string;
  /** When it is not. */
  readonly whenNotToUse?: string;
  /** Sentences that people say who want this. */
  readonly examples?: readonly string[];
  /** What kind of operation it is. */
  readonly category?: string;
  /** `plugins` for a service that models are not shown; `callers` unless said. */
  readonly audience?: 'callers' | 'plugins';
  /** Its parameters; none if absent. */
  readonly input?: I;
  /** Its data. */
  readonly output?: O;
  /** It changes nothing. */
  readonly readOnly?: boolean;
  /** It may destroy something: it runs only once somebody agrees. */
  readonly destructive?: boolean;
  /** Twice is as good as once: it may be tried again. */
  readonly idempotent?: boolean;
  /** It reaches beyond this machine. */
  readonly openWorld?: boolean;
  /** How many milliseconds it may run; 30,000 unless said. */
  readonly timeoutMs?: number;
  /** How many milliseconds it may go without `context.progress`. */
  readonly stallTimeoutMs?: number;
  /** Callers get a job at once, and need not wait. */
  readonly longRunning?: boolean;
  /** Whether somebody must agree before it runs; `auto`, if it is destructive, unless said. */
  readonly confirm?: 'auto' | 'always' | 'never';
  /** Only callers whose profile holds this scope may use it. */
  readonly scope?: string;
  /** For how many seconds the same arguments get the same answer; only where it is `readOnly`. */
  readonly cacheTtl?: number;
  /** Data of more bytes is given in pages; 65,536 unless said. */
  readonly resultLimit?: number;
}

/** Data, a `Reply` with it, or a promise of either. */
export type Handled<O> = O | Reply<O> | Promise<O | Reply<O>>;

type DataOf<O> = unknown extends O ? unknown : O extends Schema ? (JsonSchema extends O ? unknown : Infer<O>) : unknown;

/** Begins a plugin; say what it offers with `operation`, then hand over to `serve`. */
export function plugin<const C extends Schema = {}>(
  name: string,
  version: string,
  options?: PluginOptions<C>,
): Plugin<Infer<C>>;

/** A whole plugin, with a configuration `C` and, once `init` has run, a state `S`. */
export class Plugin<C = any, S = undefined> {
  constructor(name: string, version: string, options?: PluginOptions<any>);

  /**
   * Offers an operation.
   *
   * Its handler is a plain function, async or not: a test can call it with `Context.forTest()`.
   */
  operation<const I extends Schema = {}, const O extends Schema = JsonSchema>(
    name: string,
    options: OperationOptions<I, O>,
    handler: (args: Infer<I>, context: Context<S, C>) => Handled<DataOf<O>>,
  ): this;

  /**
   * Opens, once at the start, what calls need; what it returns is `context.state` from then on.
   *
   * An error disables the plugin, with its message as the reason that people see.
   */
  init<T>(hook: (config: C, context: InitContext<undefined, C>) => T): Plugin<C, Awaited<T>>;

  /**
   * Takes up a changed configuration without a new process, while calls go on.
   *
   * What it returns, if anything, is the new `context.state`. An error leaves the old configuration in use.
   * A plugin with an `init` and without this hook is started anew when its configuration changes; one without
   * either needs none, for its handlers read `context.config`.
   */
  reload(hook: (config: C, context: InitContext<S, C>) => void | S | Promise<void | S>): this;

  /**
   * Releases what the plugin holds, when the host says to shut down.
   *
   * Not when the host is gone: a plugin then leaves at once.
   */
  shutdown(hook: (context: InitContext<S, C>) => unknown): this;

  /** The manifest, as `describe` answers it. Throws a `DeclarationError` when something is declared wrongly. */
  manifest(): any;

  /**
   * Speaks the protocol over standard input and output until the host is done. The last thing a plugin does.
   *
   * Given `import.meta`, it does so only where that module is the program that was started, so that a test
   * may import it. Run by hand on a terminal it says what it is; `--describe` prints the manifest, `--help`
   * and `--version` do what they do elsewhere. A declaration that is wrong ends it with exit status 125:
   * starting again would not help.
   */
  serve(meta?: { readonly url: string }): this;
}

/** A call worth making next. */
export interface NextAction {
  readonly operation?: string;
  readonly description?: string;
  readonly arguments?: object;
}

/** Data with one line about it, and what may be worth calling next. */
export class Reply<T = unknown> {
  constructor(
    data: T,
    about?: {
      /** One line, for people and for a model's context. */
      readonly summary?: string | undefined;
      /** At most 20. */
      readonly nextActions?: readonly NextAction[] | undefined;
    },
  );
  readonly data: T;
  readonly summary: string | undefined;
  readonly nextActions: readonly NextAction[] | undefined;
}

/**
 * A failure in the plugin's own words, for handlers and hooks to throw.
 *
 * Callers get its name, message and hint. Any other error that a handler throws is a fault of the plugin:
 * the caller gets its class, and its message and stack go to the log.
 */
export class PluginError extends Error {
  constructor(
    name: string | undefined,
    message: string,
    options?: {
      /** What the caller can do about it. */
      readonly hint?: string | undefined;
      /** Whether the same call may succeed later. */
      readonly retryable?: boolean | undefined;
      /** What it came from. That a call of another plugin failed is handed on to the caller. */
      readonly cause?: unknown;
      /** The code on the wire; 1, "the operation failed", unless said. */
      readonly code?: number | undefined;
    },
  );
  /** What a call throws that stopped because it was cancelled. */
  static cancelled(): PluginError;
  readonly hint: string | undefined;
  readonly retryable: boolean;
  readonly code: number;
  /** Whether this is the end of a cancelled call. */
  get isCancelled(): boolean;
}

/** A declaration that cannot be served: everything that is wrong with it, at once. */
export class DeclarationError extends Error {
  constructor(faults: string[]);
  /** What is wrong, a sentence each. */
  readonly faults: readonly string[];
}

// ---------------------------------------------------------------- contexts

/** Levels of log lines, the least first. */
export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** What handlers and hooks share. */
export interface Ground<S, C> {
  /** What `init` returned, or the latest `reload` that returned something. */
  readonly state: S;
  /** The configuration. */
  readonly config: C;
  /** Writes a line to the plugin's log; arguments are formatted as `console.log` does. */
  log(level: Level, message: unknown, ...more: unknown[]): void;
  /** Logs each step. */
  trace(message: unknown, ...more: unknown[]): void;
  /** Logs for finding faults. */
  debug(message: unknown, ...more: unknown[]): void;
  /** Logs something normal. */
  info(message: unknown, ...more: unknown[]): void;
  /** Logs something odd that was handled. */
  warn(message: unknown, ...more: unknown[]): void;
  /** Logs a failure. */
  error(message: unknown, ...more: unknown[]): void;
  /**
   * Says how far it is: `done` of `total`, where the total is known. A few times a second are plenty.
   *
   * In `init` it asks for more time: 30 s each, 300 s in all. It throws a `TypeError` where `done` or `total` is no
   * number.
   */
  progress(done: number, total?: number | null, message?: string): void;
}

/** What a hook (`init`, `reload`, `shutdown`) knows besides the configuration. */
export class InitContext<S = any, C = any> {
  private constructor();
  /** A start without a host, for tests of a hook as a plain function. */
  static forTest<S = undefined, C = undefined>(about?: {
    dataDir?: string;
    locale?: string;
    state?: S;
    config?: C;
  }): InitContext<S, C>;
  /** A folder of the plugin's own that outlives its runs. */
  readonly dataDir: string;
  /** The language to speak, a BCP 47 tag. */
  readonly locale: string;
}
export interface InitContext<S, C> extends Ground<S, C> {}

/** What an answer has to be: the name of a JSON type, a JSON Schema, or a schema of zod and its like. */
export type AnswerSchema = keyof Primitives | JsonSchema | StandardSchema;

/** The type of an answer. */
export type Answer<A> = A extends keyof Primitives
  ? Primitives[A]
  : A extends StandardSchema
    ? Infer<A>
    : FromJsonSchema<A>;

/** One of several questions. */
export interface Question {
  /** The question, on one line. */
  readonly prompt: string;
  /** Of the answer; any text if absent. */
  readonly schema?: AnswerSchema | undefined;
  /** Whether the answer is not shown while it is typed, and never logged. */
  readonly secret?: boolean | undefined;
}

/** What another plugin answered. */
export interface HostReply<T = any> {
  readonly data: T;
  /** Its one line about it. */
  readonly summary: string | undefined;
  /** The id of that call. */
  readonly callId: string | undefined;
}

/** The session's variables. */
export interface Vars {
  /** Its value, `undefined` where there is none. */
  get<T = any>(name: string): Promise<T | undefined>;
  /** Sets a variable. */
  set(name: string, value: unknown): Promise<void>;
  /** Sets a variable if it has the expected value; whether it did. */
  compareAndSet(name: string, expected: unknown, value: unknown): Promise<boolean>;
}

/** What a test may say about a call. */
export interface CallOptions {
  /** How many milliseconds the call has; 30,000 unless said. */
  readonly deadlineMs?: number;
  readonly attempt?: number;
  readonly sessionId?: string;
  readonly traceparent?: string;
  readonly caller?: string;
  readonly idempotencyKey?: string;
  readonly locale?: string;
}

/**
 * One call: who asked, how long there is, and how to speak to the host meanwhile.
 *
 * Hand it on to whatever works for the call. There is nothing ambient: two calls at once share nothing
 * through it.
 */
export class Context<S = any, C = any> {
  private constructor();
  /**
   * A call without a host, for tests of handlers as plain functions.
   *
   * It has 30 seconds; what it logs is lost and what it asks the host fails. Where those matter, use `Host`
   * of `plugd-sdk/testing`.
   */
  static forTest<S = undefined, C = undefined>(
    about?: CallOptions & { callId?: string; state?: S; config?: C },
  ): Context<S, C>;
  /** The call's id, the host's own. */
  get callId(): string;
  /** The session the call belongs to. */
  get sessionId(): string | undefined;
  /** The W3C trace context to hand on to remote services. */
  get traceparent(): string | undefined;
  /** The trace's id, 32 hexadecimal digits: every log line of the call carries it. */
  get traceId(): string | undefined;
  /** 1, or more where the host tries an idempotent call again. */
  get attempt(): number;
  /** The caller's key for having this done once. */
  get idempotencyKey(): string | undefined;
  /** Who calls: a caller's profile, or `plugin:NAME`. */
  get caller(): string | undefined;
  /** The language the caller speaks, a BCP 47 tag. */
  get locale(): string | undefined;
  /** When the host stops waiting; later by as long as people took to answer questions. */
  get deadline(): Date;
  /** How many milliseconds the host still waits; 0 once the deadline has passed. */
  get timeLeft(): number;
  /** Whether the host has asked to stop: after a timeout, too. */
  get cancelled(): boolean;
  /** Throws once the call is cancelled, for use between two steps. */
  check(): void;
  /** Aborts when the call is cancelled: for `fetch` and everything else that takes a signal. */
  get signal(): AbortSignal;
  /** Waits until the call is cancelled, at most for so many milliseconds; whether it is cancelled. */
  waitCancelled(ms: number): Promise<boolean>;
  /** Sends a piece of the result ahead of it, for those who watch. The answer must still be whole. */
  partial(data: unknown): void;
  /**
   * Uses another plugin's operation, `plugin.operation`, and waits for its answer.
   *
   * The plugin must be named under `requires`. The inner call shares this one's deadline, session and trace,
   * and ends when this one is cancelled. It throws the inner call's failure: left uncaught, the answer to
   * this call names the plugin that failed.
   */
  call<T = any>(operation: string, args?: object): Promise<HostReply<T>>;
  /**
   * Asks the person behind the call, and waits for the answer; the call's clock stands still meanwhile.
   *
   * It throws a `PluginError` named `nobody_to_ask`, `declined` or `expired` where there is no answer.
   */
  ask(prompt: string, schema?: undefined, options?: { name?: string }): Promise<string>;
  ask<const A extends AnswerSchema>(prompt: string, schema: A, options?: { name?: string }): Promise<Answer<A>>;
  /** Asks for a secret: it is not shown while it is typed, and never logged. */
  askSecret(prompt: string, options?: { name?: string }): Promise<string>;
  /** Asks several things at once, at most 16; the answers come under the questions' names. */
  askMany<const Q extends { readonly [name: string]: string | Question }>(
    questions: Q,
  ): Promise<{
    -readonly [N in keyof Q]: Q[N] extends { readonly schema: infer A extends AnswerSchema } ? Answer<A> : string;
  }>;
  /** The session's variables; no host offers them yet: they fail as `not_offered`. */
  get vars(): Vars;
  /** Tells those who listen that something happened; no host offers it yet: it fails as `not_offered`. */
  emit(event: string, data?: unknown): Promise<void>;
}
export interface Context<S, C> extends Ground<S, C> {}
