/** Handlers of access reviews, rules reviews and token reviews. */
import type { SelfSubjectReview } from "../../api/authentication/self-subject-review.ts";
import type { TokenReview, TokenReviewStatus } from "../../api/authentication/token-review.ts";
import type {
  SelfSubjectAccessReview,
  SubjectAccessReview,
  SubjectAccessReviewSpec,
  SubjectAccessReviewStatus,
} from "../../api/authorization/access-review/schema.ts";
import type { SelfSubjectRulesReview } from "../../api/authorization/access-review/self-subject-rules-review.ts";
import type { ApiObject } from "../../api/kind.ts";
import { kubernetesGroup, svcGroup } from "../../api/scheme.ts";
import { badRequest } from "../../api/status.ts";
import { type Attributes, type Authorizer, extraOf, type UserInfo, type UserRules } from "../../auth/user.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ReviewToken } from "../authentication/authenticators.ts";
import type { ReviewHandler } from "../handlers/review.ts";
import { type RequestContext, userOf } from "../request/request-context.ts";
import { fieldSelectorText, labelSelectorText } from "./review-selectors.ts";

export interface ReviewDeps {
  readonly reviewToken: ReviewToken;
  readonly authorizer: Authorizer;
  /** Whether reviews may contain selectors (gate AuthorizeWithSelectors). */
  readonly selectors: boolean;
  readonly clock: Clock;
}

/** By kind. */
export function createReviewHandlers({
  reviewToken,
  authorizer,
  selectors,
  clock,
}: ReviewDeps): Readonly<Record<string, ReviewHandler>> {
  const authorize = (user: UserInfo, reviewed: ReviewedAttributes) =>
    authorizeReview(authorizer, user, selectors ? reviewed : withoutSelectors(reviewed));
  const access: ReviewHandler = async (_context, object) => {
    const { spec } = object as SubjectAccessReview;
    return withReviewStatus(object, await authorize(reviewedUser(spec), spec));
  };
  return {
    SubjectAccessReview: access,
    LocalSubjectAccessReview: access,
    async SelfSubjectAccessReview(context, object) {
      const { spec } = object as SelfSubjectAccessReview;
      return withReviewStatus(object, await authorize(userOf(context), spec));
    },
    async SelfSubjectRulesReview(context, object) {
      const { namespace = "" } = (object as SelfSubjectRulesReview).spec ?? {};
      if (namespace === "") throw badRequest("no namespace on request");
      // The response does not repeat the spec, as in Kubernetes.
      return {
        metadata: {},
        spec: {},
        status: rulesReviewStatus(authorizer, userOf(context), namespace, groupNameOf(context)),
      } as ApiObject;
    },
    async SelfSubjectReview(context) {
      const metadata = { creationTimestamp: formatTime(clock.now()) };
      return { metadata, status: { userInfo: userInfo(userOf(context)) } } satisfies SelfSubjectReview;
    },
    async TokenReview(_context, object) {
      const { token = "", audiences = [] } = (object as TokenReview).spec ?? {};
      if (token === "") throw badRequest("token is required for TokenReview in authentication");
      return withReviewStatus(object, await reviewTokenStatus(reviewToken, token, audiences));
    },
  };
}

function withReviewStatus<T extends ApiObject, S>(object: T, status: S): T & { readonly status: S } {
  return { ...object, status };
}

type ReviewedAttributes = Pick<SubjectAccessReviewSpec, "resourceAttributes" | "nonResourceAttributes">;

/** Drops the selectors, as a server without the feature gate does. */
function withoutSelectors(reviewed: ReviewedAttributes): ReviewedAttributes {
  if (reviewed.resourceAttributes === undefined) return reviewed;
  const { fieldSelector: _field, labelSelector: _label, ...resourceAttributes } = reviewed.resourceAttributes;
  return { ...reviewed, resourceAttributes };
}

async function authorizeReview(
  authorizer: Authorizer,
  user: UserInfo,
  reviewed: ReviewedAttributes,
): Promise<SubjectAccessReviewStatus> {
  const { attributes, problems } = reviewAttributes(user, reviewed);
  const { decision, reason, error } = await authorizer.authorize(attributes);
  const evaluation = [...(error === undefined ? [] : [error]), ...problems].join("; ");
  return {
    allowed: decision === "allow",
    ...(decision === "deny" ? { denied: true } : {}),
    ...(reason === "" ? {} : { reason }),
    ...(evaluation === "" ? {} : { evaluationError: evaluation }),
  };
}

function reviewAttributes(
  user: UserInfo,
  reviewed: ReviewedAttributes,
): { attributes: Attributes; problems: readonly string[] } {
  const { resourceAttributes: resource, nonResourceAttributes: path } = reviewed;
  const fields = fieldSelectorText(resource?.fieldSelector);
  const labels = labelSelectorText(resource?.labelSelector);
  const attributes: Attributes = {
    user,
    verb: (resource ?? path)?.verb ?? "",
    isResourceRequest: resource !== undefined,
    namespace: resource?.namespace ?? "",
    apiGroup: resource?.group ?? "",
    apiVersion: resource?.version ?? "",
    resource: resource?.resource ?? "",
    subresource: resource?.subresource ?? "",
    name: resource?.name ?? "",
    path: path?.path ?? "",
    ...(fields.text === undefined ? {} : { fieldSelector: fields.text }),
    ...(labels.text === undefined ? {} : { labelSelector: labels.text }),
  };
  const problemOf = (name: string, problem: string | undefined): readonly string[] =>
    problem === undefined ? [] : [`spec.resourceAttributes.${name} ${problem}`];
  return {
    attributes,
    problems: [...problemOf("fieldSelector", fields.problem), ...problemOf("labelSelector", labels.problem)],
  };
}

function reviewedUser({ user = "", groups = [], extra = {}, uid = "" }: SubjectAccessReviewSpec): UserInfo {
  return { name: user, uid, groups, extra: extraOf(extra) };
}

function userInfo({ name, uid, groups, extra }: UserInfo) {
  return {
    username: name,
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

type GroupName = (group: string) => string;

/** Group names in the response have the alias of the request's group. */
function groupNameOf({ info }: RequestContext): GroupName {
  return info.group === kubernetesGroup(info.group) ? kubernetesGroup : svcGroup;
}

function rulesReviewStatus(authorizer: Authorizer, user: UserInfo, namespace: string, groupName: GroupName) {
  const found: UserRules = authorizer.rulesFor?.(user, namespace) ?? { rules: [], incomplete: true };
  const rules = firstRules(found.rules);
  const isCut = rules.length < found.rules.length;
  const errors = found.error === undefined ? [] : [found.error];
  if (isCut) errors.push(`only the first ${rules.length} of ${found.rules.length} rules are listed`);
  const forPaths = rules.filter((rule) => (rule.nonResourceURLs ?? []).length > 0);
  const forResources = rules.filter((rule) => (rule.nonResourceURLs ?? []).length === 0);
  return {
    resourceRules: forResources.map(({ nonResourceURLs: _, ...rule }) => ({
      ...rule,
      ...(rule.apiGroups === undefined ? {} : { apiGroups: rule.apiGroups.map(groupName) }),
    })),
    nonResourceRules: forPaths.map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete: found.incomplete || isCut,
    ...(errors.length === 0 ? {} : { evaluationError: errors.join("; ") }),
  };
}

/** Values of the rules in one answer: to encode so many takes 60 ms. */
const RULE_VALUES_MAX = 50_000;

function firstRules(rules: UserRules["rules"]): UserRules["rules"] {
  let values = 0;
  const end = rules.findIndex(({ verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }) => {
    for (const list of [verbs, apiGroups, resources, resourceNames, nonResourceURLs]) values += list.length;
    return values > RULE_VALUES_MAX;
  });
  return end < 0 ? rules : rules.slice(0, end);
}

async function reviewTokenStatus(
  reviewToken: ReviewToken,
  token: string,
  audiences: readonly string[],
): Promise<TokenReviewStatus> {
  const found = await reviewToken(token, audiences);
  if ("error" in found) return { error: found.error };
  return { authenticated: true, user: userInfo(found.user), audiences: found.audiences };
}
