/** The schemas of subresources' bodies and connect options. */
import { tokenRequest } from "../../api/authentication/token-request.ts";
import { scale } from "../../api/autoscaling/scale/schema.ts";
import { binding } from "../../api/core/binding/schema.ts";
import { nodeProxyOptions } from "../../api/core/node/proxy-options.ts";
import {
  podAttachOptions,
  podExecOptions,
  podPortForwardOptions,
  podProxyOptions,
} from "../../api/core/pod/connect-options.ts";
import { serviceProxyOptions } from "../../api/core/service/proxy-options.ts";
import type { Subresource } from "../../api/kind.ts";
import { eviction } from "../../api/policy/eviction.ts";
import type { ObjectSchema } from "../../schema/schema.ts";

const bodySchemas: Readonly<Record<string, ObjectSchema>> = {
  Binding: binding,
  Eviction: eviction,
  Scale: scale,
  TokenRequest: tokenRequest,
};

/** Throws for a subresource without a known body schema. */
export function subresourceSchema({ name, kind }: Subresource): ObjectSchema {
  const schema = bodySchemas[kind];
  if (schema === undefined) throw new Error(`Cannot describe subresource ${name}: ${kind} has no schema here`);
  return schema;
}

const connectOptionSchemas: Readonly<Record<string, ObjectSchema>> = {
  NodeProxyOptions: nodeProxyOptions,
  PodAttachOptions: podAttachOptions,
  PodExecOptions: podExecOptions,
  PodPortForwardOptions: podPortForwardOptions,
  PodProxyOptions: podProxyOptions,
  ServiceProxyOptions: serviceProxyOptions,
};

/** The options of a stream or a proxy; undefined for other subresources. */
export function connectOptions({ kind }: Subresource): ObjectSchema | undefined {
  return connectOptionSchemas[kind];
}
