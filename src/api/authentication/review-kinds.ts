import { type FieldError, invalidField, unquoted } from "../../schema/validation/field-error.ts";
import type { Kind } from "../kind.ts";
import { createReviewKind } from "../review-kind.ts";
import { type SelfSubjectReview, selfSubjectReview } from "./self-subject-review.ts";
import { type TokenRequest, tokenRequest } from "./token-request.ts";
import { type TokenReview, tokenReview } from "./token-review.ts";

const names = { group: "authentication.svc.io", version: "v1", namespaced: false } as const;

export const tokenReviewKind = createReviewKind<TokenReview>({ ...names, kind: "TokenReview", schema: tokenReview });

export const selfSubjectReviewKind = createReviewKind<SelfSubjectReview>({
  ...names,
  kind: "SelfSubjectReview",
  schema: selfSubjectReview,
});

const DEFAULT_SECONDS = 3600;
const SECONDS_MIN = 600;
const SECONDS_MAX = 2 ** 32;

/** The body of `serviceaccounts/token`; not a resource of its own. */
export const tokenRequestKind: Kind<TokenRequest> = {
  ...createReviewKind<TokenRequest>({
    group: names.group,
    version: names.version,
    kind: "TokenRequest",
    namespaced: true,
    schema: tokenRequest,
  }),
  strategy: {
    setDefaults: ({ spec, ...rest }) => {
      const { audiences = [], expirationSeconds = DEFAULT_SECONDS, ...others } = spec ?? {};
      // Without audiences the client did not set the list.
      const named = audiences.length === 0 ? {} : { audiences };
      return { ...rest, spec: { ...others, ...named, expirationSeconds } } as TokenRequest;
    },
    validate: ({ spec }) => validateSeconds(spec?.expirationSeconds ?? DEFAULT_SECONDS),
  },
};

function validateSeconds(seconds: number): readonly FieldError[] {
  const wrong = (why: string): readonly FieldError[] => [
    invalidField("spec.expirationSeconds", unquoted(String(seconds)), why),
  ];
  if (seconds < SECONDS_MIN) return wrong("may not specify a duration less than 10 minutes");
  return seconds > SECONDS_MAX ? wrong("may not specify a duration larger than 2^32 seconds") : [];
}
