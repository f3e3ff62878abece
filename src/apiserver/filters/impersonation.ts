/** `Impersonate-User` and its kin: the request goes on as somebody else, if its sender may `impersonate` each part. */
import { forbidden } from "../../api/status.ts";
import { refusal } from "../../auth/authz/reason.ts";
import {
  ANONYMOUS,
  type Attributes,
  AUTHENTICATED,
  type Authorizer,
  UNAUTHENTICATED,
  type UserInfo,
} from "../../auth/user.ts";
import { type HttpRequest, type HttpResponse, headerValues } from "../../http/message.ts";
import { text } from "../../http/respond.ts";
import { type Stage, userOf, withUser } from "../request/request-context.ts";

const EXTRA = "impersonate-extra-";
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
const AUTHENTICATION = "authentication.k8s.io";

export function impersonation(authorizer: Authorizer): Stage {
  return (next) => async (context) => {
    const wanted = wantedOf(context.request);
    if (isNobody(wanted)) return await next(context);
    if (wanted.name === "") return ofNobody(context.request, wanted);
    const user = userOf(context);
    for (const part of partsOf(wanted)) {
      const attributes = { ...part, user, verb: "impersonate", isResourceRequest: true, apiVersion: "v1", path: "" };
      const { decision, reason } = await authorizer.authorize(attributes);
      if (decision === "allow") continue;
      const subject = { group: part.apiGroup, resource: part.resource, name: part.name };
      throw forbidden(subject, refusal(attributes, reason));
    }
    return await next(withUser(context, completed(wanted)));
  };
}

function wantedOf(request: HttpRequest): UserInfo {
  const { headers } = request;
  const extra = new Map<string, readonly string[]>();
  for (const header in headers) {
    if (header.startsWith(EXTRA)) extra.set(decoded(header.slice(EXTRA.length)), listOf(request, header));
  }
  const [name = "", uid = ""] = ["impersonate-user", "impersonate-uid"].map((each) => headerValues(request, each)[0]);
  return { name, uid, groups: listOf(request, "impersonate-group"), extra: Object.fromEntries(extra) };
}

function isNobody({ name, uid, groups, extra }: UserInfo): boolean {
  return name === "" && uid === "" && groups.length === 0 && Object.keys(extra).length === 0;
}

/** Parts of a user without the user: Kubernetes has not foreseen it, and shows what it has read as Go shows it. */
function ofNobody({ path, query }: HttpRequest, { uid, groups, extra }: UserInfo): HttpResponse {
  const parts = [
    ...groups.map((group) => `{Group  ${group}    }`),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => `{UserExtra  ${value}  ${AUTHENTICATION}/v1  ${key}}`),
    ),
    ...(uid === "" ? [] : [`{UID  ${uid}  ${AUTHENTICATION}/v1  }`]),
  ];
  const asked = JSON.stringify(query === "" ? path : `${path}?${query}`);
  return text(500, `Internal Server Error: ${asked}: requested [${parts.join(" ")}] without impersonating a user\n`);
}

function listOf(request: HttpRequest, header: string): readonly string[] {
  return headerValues(request, header).filter((value) => value !== "");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

type Part = Pick<Attributes, "namespace" | "apiGroup" | "resource" | "subresource" | "name">;

function partsOf({ name, uid, groups, extra }: UserInfo): readonly Part[] {
  const [, namespace = "", account] = SERVICE_ACCOUNT.exec(name) ?? [];
  const core = { namespace: "", apiGroup: "", subresource: "" };
  return [
    account === undefined
      ? { ...core, resource: "users", name }
      : { ...core, namespace, resource: "serviceaccounts", name: account },
    ...groups.map((group) => ({ ...core, resource: "groups", name: group })),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => ({
        ...core,
        apiGroup: AUTHENTICATION,
        resource: "userextras",
        subresource: key,
        name: value,
      })),
    ),
    ...(uid === "" ? [] : [{ ...core, apiGroup: AUTHENTICATION, resource: "uids", name: uid }]),
  ];
}

/** With the groups that authentication would have given. */
function completed(user: UserInfo): UserInfo {
  const [, namespace] = SERVICE_ACCOUNT.exec(user.name) ?? [];
  const own = namespace === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  const groups = user.groups.length > 0 ? user.groups : own;
  const everybody = user.name === ANONYMOUS ? UNAUTHENTICATED : AUTHENTICATED;
  if (groups.includes(everybody) || groups.includes(UNAUTHENTICATED)) return { ...user, groups };
  return { ...user, groups: [...groups, everybody] };
}
