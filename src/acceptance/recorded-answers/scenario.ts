/** The scenarios of `shared/oracles/recorded-*`. */

export interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly user?: string;
  readonly body?: unknown;
  readonly text?: string;
  readonly base64?: string;
  readonly repeat?: { readonly pre: string; readonly unit: string; readonly count: number; readonly post: string };
  readonly capture?: Readonly<Record<string, string>>;
}

export interface Expected {
  readonly code: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: unknown;
  readonly text?: string;
  readonly keys?: readonly string[];
  readonly empty?: boolean;
  readonly prefixHex?: string;
  readonly events?: readonly unknown[];
  /** Annotations for the audit log by the audit id of the request. */
  readonly annotations?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface Step {
  readonly action?: "sleep" | "compact" | "start" | "finish" | "poll" | "annotations";
  /** For `poll`. */
  readonly until?: {
    readonly code?: number;
    readonly text?: string;
    readonly pointer?: string;
    readonly value?: unknown;
  };
  /** For `sleep`. */
  readonly ms?: number;
  /** Name of the captured revision to compact at. */
  readonly revision?: string;
  /** The watch that is started or finished. */
  readonly stream?: string;
  /** The number of events after which the watch is stopped. */
  readonly events?: number;
  readonly eventsAs?: "set";
  readonly skipBookmarks?: boolean;
  readonly request?: SentRequest;
  readonly mode?: string;
  readonly capture?: Readonly<Record<string, string>>;
  readonly expect?: Expected;
}

export interface Scenario {
  readonly id: string;
  readonly area: string;
  readonly title: string;
  readonly serverFlags?: readonly string[];
  readonly server?: { readonly controller?: string } | undefined;
  readonly setup?: readonly SentRequest[];
  readonly steps: readonly Step[];
}
