export interface MediaType {
  /** `application/json`, lower case. */
  readonly type: string;
  /** Names in lower case. */
  readonly params: Readonly<Record<string, string>>;
}

/** A `Content-Type`; undefined when it is malformed. */
export declare function parseMediaType(header: string): MediaType | undefined;

/** The clauses of an `Accept` header, most wanted first; those with `q=0` left out. Malformed clauses are skipped. */
export declare function parseAccept(header: string): readonly MediaType[];

export interface Offer {
  /** `application/json` */
  readonly mediaType: string;
}

/**
 * Picks what to answer with: the first clause of `accept` that an offer satisfies, offers tried in their order. No
 * header, or an empty one, takes the first offer. `fits` judges the clause's parameters, such as
 * `as=Table;v=v1;g=meta.k8s.io`; without it a clause with `as` never fits. Undefined: nothing acceptable (406).
 */
export declare function negotiate<O extends Offer>(
  accept: string | undefined,
  offers: readonly O[],
  fits?: (offer: O, params: Readonly<Record<string, string>>) => boolean,
): { readonly offer: O; readonly params: Readonly<Record<string, string>> } | undefined;
