/** `Impersonate-User` and its kin: the request goes on as somebody else, if its sender may `impersonate` each part. */
import { forbidden, StatusError } from "../../api/status.ts";
import { refusal } from "../../auth/authz/reason.ts";
import {
  ANONYMOUS,
  type Attributes,
  AUTHENTICATED,
  type Authorizer,
  UNAUTHENTICATED,
  type UserInfo,
} from "../../auth/user.ts";
import type { Headers } from "../../http/message.ts";
import { type Stage, userOf, withUser } from "../context.ts";

const EXTRA = "impersonate-extra-";
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
const AUTHENTICATION = "authentication.k8s.io";

export function impersonation(authorizer: Authorizer): Stage {
  return (next) => async (context) => {
    const wanted = wantedOf(context.request.headers);
    if (wanted === undefined) return await next(context);
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

/** Undefined when nobody is to be impersonated. Throws where something is asked of nobody. */
function wantedOf(headers: Headers): UserInfo | undefined {
  const name = headers["impersonate-user"] ?? "";
  const groups = listOf(headers["impersonate-group"]);
  const uid = headers["impersonate-uid"] ?? "";
  const extra: Record<string, readonly string[]> = {};
  for (const [header, value] of Object.entries(headers)) {
    if (header.startsWith(EXTRA)) extra[decoded(header.slice(EXTRA.length))] = listOf(value);
  }
  if (name !== "") return { name, uid, groups, extra };
  if (groups.length === 0 && uid === "" && Object.keys(extra).length === 0) return undefined;
  const message = "Internal error occurred: parts of a user are to be impersonated without Impersonate-User";
  throw new StatusError(500, "InternalError", message);
}

/** Repeated headers have been joined; each member is checked by itself. */
function listOf(header: string | undefined): readonly string[] {
  return header === undefined ? [] : header.split(", ").filter((value) => value !== "");
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
