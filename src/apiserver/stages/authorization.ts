import { forbidden, StatusError } from "../../api/status.ts";
import { refusal } from "../../auth/authz/reason.ts";
import type { Attributes, Authorizer } from "../../auth/user.ts";
import { type RequestContext, type Stage, userOf } from "../context.ts";

/** Lets through what is allowed and answers 403 to everything else. */
export function authorization(authorizer: Authorizer): Stage {
  return (next) => async (context) => {
    await demand(authorizer, attributesOf(context));
    return await next(context);
  };
}

/** Throws a 403 for what is not allowed. */
export async function demand(authorizer: Authorizer, attributes: Attributes): Promise<void> {
  const { decision, reason } = await authorizer.authorize(attributes);
  if (decision !== "allow") throw refused(attributes, reason);
}

export function attributesOf(context: RequestContext): Attributes {
  const { info } = context;
  const fieldSelector = info.query.get("fieldSelector");
  const labelSelector = info.query.get("labelSelector");
  return {
    user: userOf(context),
    verb: info.verb,
    isResourceRequest: info.isResourceRequest,
    namespace: info.namespace,
    apiGroup: info.group,
    apiVersion: info.version,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    path: info.path,
    ...(fieldSelector === null ? {} : { fieldSelector }),
    ...(labelSelector === null ? {} : { labelSelector }),
  };
}

function refused(attributes: Attributes, reason: string): StatusError {
  const why = refusal(attributes, reason);
  if (!attributes.isResourceRequest) return new StatusError(403, "Forbidden", `forbidden: ${why}`, { details: {} });
  return forbidden({ group: attributes.apiGroup, resource: attributes.resource, name: attributes.name }, why);
}
