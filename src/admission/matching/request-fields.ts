/** The request as `AdmissionReview` and expressions have it. */
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { EquivalentResource } from "./equivalent-resource.ts";

type Json = Readonly<Record<string, unknown>>;

/** The request without uid and objects, as match conditions also see it. */
export function requestFields(request: AdmissionRequest, resource: EquivalentResource): Json {
  const { subresource, name, namespace, operation, user, options } = request;
  const subResource = subresource === "" ? {} : { subResource: subresource };
  const { objectKind, kind, group } = request;
  const requestKind = { group: objectKind.group, version: objectKind.version, kind: objectKind.kind };
  return {
    kind: { ...resource.objects },
    resource: { group: resource.group, version: resource.version, resource: resource.plural },
    ...subResource,
    requestKind: requestKind,
    requestResource: { group, version: kind.version, resource: kind.plural },
    ...(subresource === "" ? {} : { requestSubResource: subresource }),
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: {
      username: user.name,
      ...(user.uid === "" ? {} : { uid: user.uid }),
      ...(user.groups.length === 0 ? {} : { groups: user.groups }),
      ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    },
    dryRun: request.dryRun,
    options: options ?? null,
  };
}
