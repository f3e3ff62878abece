/** `Impersonate-User` and the related headers: replaces the user, if the sender may `impersonate` each attribute. */
import { forbidden } from "../../api/status.ts";
import { escapeHtml, forbiddenMessage } from "../../auth/authz/reason.ts";
import {
  ANONYMOUS,
  type Attributes,
  AUTHENTICATED,
  type Authorizer,
  UNAUTHENTICATED,
  type UserInfo,
} from "../../auth/user.ts";
import { type HttpRequest, type HttpResponse, headerTexts } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import {
  type RequestContext,
  type RequestFilter,
  type RequestHandler,
  userOf,
  withUser,
} from "../request/request-context.ts";

/** Of all headers of this filter. */
const PREFIX = "impersonate-";
const EXTRA_PREFIX = "impersonate-extra-";
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
const AUTHENTICATION_GROUP = "authentication.k8s.io";

export function withImpersonation(authorizer: Authorizer): RequestFilter {
  return (next) => (context) =>
    hasImpersonation(context.request) ? impersonate(authorizer, context, next) : next(context);
}

async function impersonate(
  authorizer: Authorizer,
  context: RequestContext,
  next: RequestHandler,
): Promise<HttpResponse> {
  const requested = impersonatedUser(context.request);
  if (isEmptyUser(requested)) return await next(context);
  if (requested.name === "") return missingUserResponse(context.request, requested);
  const user = userOf(context);
  for (const part of impersonatedAttributes(requested)) {
    const attributes = { ...part, user, verb: "impersonate", isResourceRequest: true, apiVersion: "v1", path: "" };
    const { decision, reason } = await authorizer.authorize(attributes);
    if (decision === "allow") continue;
    const subject = { group: part.apiGroup, resource: part.resource, name: part.name };
    throw forbidden(subject, forbiddenMessage(attributes, reason));
  }
  const impersonated = addDefaultGroups(requested);
  context.audit?.impersonate(impersonated);
  return await next(withUser(context, impersonated));
}

function hasImpersonation({ headers }: HttpRequest): boolean {
  for (const name in headers) if (name.startsWith(PREFIX)) return true;
  return false;
}

function impersonatedUser(request: HttpRequest): UserInfo {
  const { headers } = request;
  const extra = new Map<string, readonly string[]>();
  for (const header in headers) {
    if (header.startsWith(EXTRA_PREFIX))
      extra.set(decodePercent(header.slice(EXTRA_PREFIX.length)), nonEmptyValues(request, header));
  }
  const [name = "", uid = ""] = ["impersonate-user", "impersonate-uid"].map((each) => headerTexts(request, each)[0]);
  return { name, uid, groups: headerTexts(request, "impersonate-group"), extra: Object.fromEntries(extra) };
}

function isEmptyUser({ name, uid, groups, extra }: UserInfo): boolean {
  return name === "" && uid === "" && groups.length === 0 && Object.keys(extra).length === 0;
}

/** Impersonation headers without a user: Kubernetes responds 500 with the requested attributes in Go's format. */
function missingUserResponse({ path, query }: HttpRequest, { uid, groups, extra }: UserInfo): HttpResponse {
  const parts = [
    ...groups.map((group) => `{Group  ${group}    }`),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => `{UserExtra  ${value}  ${AUTHENTICATION_GROUP}/v1  ${key}}`),
    ),
    ...(uid === "" ? [] : [`{UID  ${uid}  ${AUTHENTICATION_GROUP}/v1  }`]),
  ];
  const target = JSON.stringify(query === "" ? path : `${path}?${query}`);
  const error = `requested [${parts.join(" ")}] without impersonating a user`;
  return textResponse(500, `Internal Server Error: ${escapeHtml(`${target}: ${error}`)}\n`);
}

function nonEmptyValues(request: HttpRequest, header: string): readonly string[] {
  return headerTexts(request, header).filter((value) => value !== "");
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

type ImpersonatedAttributes = Pick<Attributes, "namespace" | "apiGroup" | "resource" | "subresource" | "name">;

function impersonatedAttributes({ name, uid, groups, extra }: UserInfo): readonly ImpersonatedAttributes[] {
  const [, namespace = "", account] = SERVICE_ACCOUNT.exec(name) ?? [];
  const base = { namespace: "", apiGroup: "", subresource: "" };
  return [
    account === undefined
      ? { ...base, resource: "users", name }
      : { ...base, namespace, resource: "serviceaccounts", name: account },
    ...groups.map((group) => ({ ...base, resource: "groups", name: group })),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => ({
        ...base,
        apiGroup: AUTHENTICATION_GROUP,
        resource: "userextras",
        subresource: key,
        name: value,
      })),
    ),
    ...(uid === "" ? [] : [{ ...base, apiGroup: AUTHENTICATION_GROUP, resource: "uids", name: uid }]),
  ];
}

/** Adds the groups that authentication adds to a user. */
function addDefaultGroups(user: UserInfo): UserInfo {
  const [, namespace] = SERVICE_ACCOUNT.exec(user.name) ?? [];
  const serviceAccountGroups =
    namespace === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  const groups = user.groups.length > 0 ? user.groups : serviceAccountGroups;
  const implicitGroup = user.name === ANONYMOUS ? UNAUTHENTICATED : AUTHENTICATED;
  if (groups.includes(implicitGroup) || groups.includes(UNAUTHENTICATED)) return { ...user, groups };
  return { ...user, groups: [...groups, implicitGroup] };
}
