/** What those who ask the agent may do: all, or what the API server allows them to do with this node. */

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

/** Resolves with what who may not is answered; undefined when all is well. */
export type AgentAuthorization = (user: UserInfo, request: HttpRequest) => Promise<HttpResponse | undefined>;

export interface AgentAuthorizationOptions {
  readonly nodeName: string;
  readonly settings: AgentConfig["server"]["authorization"];
  /** Undefined for an agent without an API server. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Undefined: whoever is let in may do everything. Throws where nobody could be asked. */
export function createAgentAuthorization(options: AgentAuthorizationOptions): AgentAuthorization | undefined {
  const { nodeName, settings, client, clock, log } = options;
  if (settings.mode === "AlwaysAllow") return undefined;
  if (client === undefined) {
    throw new Error(
      "Cannot serve: the authorization mode Webhook, the default once there is a configuration file, asks an API " +
        "server, and there is none; name one with --svcconfig, or set authorization.mode (--authorization-mode) to " +
        "AlwaysAllow",
    );
  }
  const authorizer = webhookAuthorizer({
    name: "API server",
    review: (spec) => createReview(client, spec),
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
  if (status === undefined) throw new Error("the API server's answer has no status");
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

/** What of the node a path stands for; all other paths stand for `nodes/proxy`, as what is most dangerous. */
const subresourcesByPath = [
  ["/stats", "stats"],
  ["/metrics", "metrics"],
  ["/logs", "log"],
  ["/checkpoint", "checkpoint"],
  ["/statusz", "statusz"],
  ["/flagz", "configz"],
] as const;

/** With the gate `SvcletFineGrainedAuthz` these are had by their own name too, tried first. */
const fineGrainedSubresources = [
  ["/pods", "pods"],
  ["/healthz", "healthz"],
  ["/configz", "configz"],
  ["/runningpods", "pods"],
] as const;

/** Any of them is enough. */
export function findSubresources(path: string, fineGrained: boolean): readonly string[] {
  const of = (known: readonly (readonly [string, string])[]): string | undefined =>
    known.find(([root]) => path === root || path.startsWith(`${root}/`))?.[1];
  const finer = fineGrained ? of(fineGrainedSubresources) : undefined;
  return [...(finer === undefined ? [] : [finer]), of(subresourcesByPath) ?? "proxy"];
}

function toAttributes(user: UserInfo, verb: string, nodeName: string, subresource: string, path: string): Attributes {
  const node = { namespace: "", apiGroup: "", apiVersion: "v1", resource: "nodes", subresource, name: nodeName };
  return { user, verb, isResourceRequest: true, ...node, path };
}
