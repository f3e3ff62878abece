/** Authorizes requests to the agent: all, or by SubjectAccessReviews for subresources of this node. */

import { subjectAccessReviewKind } from "../../api/authorization/access-review/kinds.ts";
import type { SubjectAccessReviewStatus } from "../../api/authorization/access-review/schema.ts";
import { webhookAuthorizer } from "../../auth/authz/webhook/webhook.ts";
import type { Attributes, Authorizer, UserInfo } from "../../auth/user.ts";
import type { Client } from "../../client/client.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { ReviewMetrics } from "../metrics/review-metrics.ts";
import { decodeSegments } from "./endpoints.ts";

/** Resolves with the error response; undefined when the request is allowed. */
export type AgentAuthorization = (user: UserInfo, request: HttpRequest) => Promise<HttpResponse | undefined>;

export interface AgentAuthorizationOptions {
  readonly nodeName: string;
  readonly settings: AgentConfig["server"]["authorization"];
  /** Undefined for an agent without an API server. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Pick<ReviewMetrics, "measureAccessReview"> | undefined;
}

/** Undefined: authenticated users may do everything. Throws when Webhook mode has no API server. */
export function createAgentAuthorization(options: AgentAuthorizationOptions): AgentAuthorization | undefined {
  const { nodeName, settings, client, clock, log, metrics } = options;
  if (settings.mode === "AlwaysAllow") return undefined;
  if (client === undefined) {
    throw new Error(
      "Cannot serve: authorization mode Webhook, the default with a configuration file, needs an API server, and " +
        "there is none; set one with --svcconfig, or set authorization.mode (--authorization-mode) to " +
        "AlwaysAllow",
    );
  }
  const authorizer = webhookAuthorizer({
    name: "API server",
    review: (spec) => {
      const review = (): Promise<SubjectAccessReviewStatus> => createReview(client, spec);
      return metrics?.measureAccessReview(review) ?? review();
    },
    authorizedTtlMs: settings.allowedMs,
    unauthorizedTtlMs: settings.deniedMs,
    failurePolicy: "NoOpinion",
    matchConditions: [],
    clock,
    random: systemRandom,
    log,
  });
  return (user, request) => checkAuthorization(authorizer, user, nodeName, request, settings.fineGrained);
}

async function createReview(client: Client, spec: object): Promise<SubjectAccessReviewStatus> {
  const { status } = await client.create(subjectAccessReviewKind, { spec });
  if (status === undefined) throw new Error("the API server's response has no status");
  return status;
}

async function checkAuthorization(
  authorizer: Authorizer,
  user: UserInfo,
  nodeName: string,
  { method, path }: Pick<HttpRequest, "method" | "path">,
  fineGrained: boolean,
): Promise<HttpResponse | undefined> {
  const verb = verbs[method] ?? "";
  const subresources = findSubresources(path, fineGrained);
  for (const subresource of subresources) {
    const { decision, error } = await authorizer.authorize(toAttributes(user, verb, nodeName, subresource, path));
    if (decision === "allow") return undefined;
    if (error === undefined) continue;
    const what = `user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource}`;
    return textResponse(500, `Authorization error (${what})`);
  }
  const what = `user=${user.name}, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(" ")}]`;
  return textResponse(403, `Forbidden (${what})\n`);
}

const verbs: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** Subresources of the node by path; all other paths are `nodes/proxy`, the most powerful one. */
const subresourcesByPath = [
  ["/stats", "stats"],
  ["/metrics", "metrics"],
  ["/logs", "log"],
  ["/checkpoint", "checkpoint"],
  ["/statusz", "statusz"],
  ["/flagz", "configz"],
] as const;

/** Checked first with the gate `SvcletFineGrainedAuthz`. */
const fineGrainedSubresources = [
  ["/pods", "pods"],
  ["/healthz", "healthz"],
  ["/configz", "configz"],
  ["/runningpods", "pods"],
] as const;

/** Permission for any of them suffices. */
export function findSubresources(encoded: string, fineGrained: boolean): readonly string[] {
  const path = decodeSegments(encoded);
  const find = (table: readonly (readonly [string, string])[]): string | undefined =>
    table.find(([root]) => path === root || path.startsWith(`${root}/`))?.[1];
  const finer = fineGrained ? find(fineGrainedSubresources) : undefined;
  return [...(finer === undefined ? [] : [finer]), find(subresourcesByPath) ?? "proxy"];
}

function toAttributes(user: UserInfo, verb: string, nodeName: string, subresource: string, path: string): Attributes {
  const node = { namespace: "", apiGroup: "", apiVersion: "v1", resource: "nodes", subresource, name: nodeName };
  return { user, verb, isResourceRequest: true, ...node, path };
}
