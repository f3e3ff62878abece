/** An API server in memory for tests of admission policies. */

import type { ApiServerConfig } from "../../apiserver/config/config.ts";
import { createDefaultConfig } from "../../apiserver/config/default-config.ts";
import { startTestServer, type TestResponse, type TestServer } from "../apiserver/server-fixture.ts";

export const ADMISSION = "/apis/admissionregistration.k8s.io";
export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

export const onConfigMaps = {
  resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
};
export const onConfigMapWrites = {
  resourceRules: [{ ...onConfigMaps.resourceRules[0], operations: ["CREATE", "UPDATE"] }],
};

export interface PolicyServer extends AsyncDisposable {
  readonly server: TestServer;
  /** Sends a request that must succeed. */
  send(line: string, body?: object): Promise<TestResponse>;
  /** Creates a validating policy with a binding of the same name. */
  validate(name: string, spec: object, binding?: object): Promise<void>;
  /** The same for a mutating one. */
  mutate(name: string, spec: object, binding?: object): Promise<void>;
  createConfigMap(name: string, data?: Readonly<Record<string, string>>): Promise<TestResponse>;
}

export interface PolicyServerOptions {
  /** The gate for mutating policies. */
  readonly mutating?: boolean;
  readonly disabledPlugins?: readonly string[];
  readonly authorizationModes?: ApiServerConfig["authorizationModes"];
}

/** Mutating policies are enabled. */
export async function startPolicyServer({
  mutating = true,
  disabledPlugins = [],
  ...config
}: PolicyServerOptions = {}): Promise<PolicyServer> {
  const defaults = createDefaultConfig({ MutatingAdmissionPolicy: mutating });
  const admission = { ...defaults.admission, disabled: [...defaults.admission.disabled, ...disabledPlugins] };
  const runtimeConfig = { "admissionregistration.k8s.io/v1alpha1": "true" };
  const server = await startTestServer({
    ...defaults,
    admission,
    apis: { ...defaults.apis, runtimeConfig },
    ...config,
  });
  const send = async (line: string, body?: object): Promise<TestResponse> => {
    const patch = line.startsWith("PATCH") ? { "content-type": "application/merge-patch+json" } : {};
    const response = await server.send(line, { headers: patch, ...(body === undefined ? {} : { body }) });
    if (response.status >= 300) throw new Error(`${line}: ${response.text}`);
    return response;
  };
  const create = async (kind: string, version: string, name: string, spec: object, binding: object): Promise<void> => {
    const metadata = { name };
    await send(`POST ${ADMISSION}/${version}/${kind}admissionpolicies`, { metadata, spec });
    const bindingSpec = { policyName: name, ...binding };
    await send(`POST ${ADMISSION}/${version}/${kind}admissionpolicybindings`, { metadata, spec: bindingSpec });
  };
  return {
    server,
    send,
    validate: (name, spec, binding) =>
      create(
        "validating",
        "v1",
        name,
        { matchConstraints: onConfigMaps, ...spec },
        { validationActions: ["Deny"], ...binding },
      ),
    mutate: (name, spec, binding = {}) =>
      create(
        "mutating",
        "v1alpha1",
        name,
        { matchConstraints: onConfigMapWrites, reinvocationPolicy: "Never", ...spec },
        binding,
      ),
    createConfigMap: (name, data = {}) => server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name }, data } }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
