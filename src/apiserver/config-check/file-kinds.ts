/** The kinds of configuration files, each with its schema and the loader of the program that reads it. */
import { admissionConfiguration, readAdmissionConfiguration } from "../../admission/chain/configuration.ts";
import { plugins } from "../../admission/plugins/built-in-plugins.ts";
import { policySchema, readAuditPolicy } from "../../audit/policy-file.ts";
import { parseAuthenticationConfiguration } from "../../auth/authn/jwt/authentication-configuration.ts";
import { authenticationConfiguration } from "../../auth/authn/jwt/authentication-configuration-schema.ts";
import {
  authorizationConfiguration,
  parseAuthorizationConfiguration,
} from "../../auth/authz/authorization-configuration.ts";
import { loadKubeconfigUsers, loadWebhookKubeconfig } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { parseConfiguration as parseSchedulerConfiguration } from "../../scheduler/config/load-configuration.ts";
import { kubeSchedulerConfiguration } from "../../scheduler/config/schema.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseEncryptionConfiguration } from "../../storage/encryption/configuration.ts";
import { encryptionConfiguration } from "../../storage/encryption/configuration-schema.ts";
import { parseTracingConfiguration, tracingConfiguration } from "../config/tracing-file.ts";
import { egressSelectorConfiguration, loadEgressConfiguration } from "../egress/configuration.ts";
import { pluginChecks } from "./admission.ts";
import type { Source } from "./problem.ts";

export interface FileKind {
  readonly kind: string;
  /** Accepted apiVersions; the first is the one that messages suggest. */
  readonly apiVersions: readonly string[];
  /** Undefined: the loader reports every mistake of the structure. */
  readonly schema?: ObjectSchema | undefined;
  /** For suggestions only. */
  readonly suggestions?: ObjectSchema | undefined;
  /** Throws the error with which a program would refuse the file. */
  readonly load: (source: Source) => unknown;
}

const GROUPS = ["apiserver.svc.io", "apiserver.config.k8s.io", "apiserver.k8s.io"];

function versionsOf(...versions: readonly string[]): readonly string[] {
  return versions.flatMap((version) => GROUPS.map((group) => `${group}/${version}`));
}

export const apiServerFileKinds: readonly FileKind[] = [
  {
    kind: "AdmissionConfiguration",
    apiVersions: versionsOf("v1", "v1alpha1"),
    schema: admissionConfiguration,
    async load({ file, text }) {
      const names = plugins.map(({ name }) => name);
      for (const [name, configuration] of readAdmissionConfiguration(file, names, text)) {
        await pluginChecks[name]?.(configuration);
      }
    },
  },
  {
    kind: "AuthenticationConfiguration",
    apiVersions: versionsOf("v1beta1", "v1alpha1"),
    schema: authenticationConfiguration,
    load: ({ file, text }) =>
      parseAuthenticationConfiguration(file, text, { ownIssuers: [], anonymousForbidden: undefined }),
  },
  {
    kind: "AuthorizationConfiguration",
    apiVersions: versionsOf("v1beta1", "v1", "v1alpha1"),
    schema: authorizationConfiguration,
    async load({ file, text }) {
      for (const [index, { webhook }] of parseAuthorizationConfiguration(file, text).entries()) {
        if (webhook === undefined) continue;
        await loadWebhookKubeconfig(webhook.file).catch((cause: unknown) => {
          const field = `authorizers[${index}].webhook.connectionInfo`;
          throw new Error(`${field}: ${(cause as Error).message}`, { cause });
        });
      }
    },
  },
  {
    kind: "EgressSelectorConfiguration",
    apiVersions: versionsOf("v1beta1", "v1alpha1"),
    schema: egressSelectorConfiguration,
    load: ({ file, text }) => loadEgressConfiguration(file, text),
  },
  {
    kind: "EncryptionConfiguration",
    apiVersions: GROUPS.slice(0, 2).map((group) => `${group}/v1`),
    schema: encryptionConfiguration,
    load: ({ file, text }) => parseEncryptionConfiguration(file, text),
  },
  {
    kind: "TracingConfiguration",
    apiVersions: versionsOf("v1beta1", "v1", "v1alpha1"),
    schema: tracingConfiguration,
    load: ({ file, text }) => parseTracingConfiguration(file, text),
  },
  {
    kind: "Policy",
    apiVersions: ["audit.svc.io/v1", "audit.k8s.io/v1"],
    schema: policySchema,
    load: ({ file, text }) => readAuditPolicy(file, text),
  },
  {
    kind: "KubeSchedulerConfiguration",
    apiVersions: ["kubescheduler.config.k8s.io/v1", "kubescheduler.config.svc.io/v1"],
    schema: kubeSchedulerConfiguration,
    load: ({ document }) => parseSchedulerConfiguration(document?.value),
  },
  {
    kind: "Config",
    apiVersions: ["v1"],
    load: async ({ file, document }) => {
      // The file of admission webhooks names a user for each server, and has no contexts.
      const { contexts } = (document?.value ?? {}) as { readonly contexts?: unknown };
      const isUsersOnly = !Array.isArray(contexts) || contexts.length === 0;
      await (isUsersOnly && hasUsers(document?.value) ? loadKubeconfigUsers(file) : loadWebhookKubeconfig(file));
    },
  },
  pluginKind("PodSecurityConfiguration", "PodSecurity", ["pod-security.admission.config.k8s.io/v1"]),
  pluginKind("ResourceQuotaConfiguration", "ResourceQuota", ["apiserver.config.k8s.io/v1"]),
  pluginKind("Configuration", "EventRateLimit", ["eventratelimit.admission.k8s.io/v1alpha1"]),
  pluginKind("WebhookAdmission", "ValidatingAdmissionWebhook", ["apiserver.config.k8s.io/v1"]),
  pluginKind("WebhookAdmissionConfiguration", "ValidatingAdmissionWebhook", ["apiserver.config.k8s.io/v1"]),
];

/** Configurations of plugins check their apiVersion themselves. */
function pluginKind(kind: string, plugin: string, apiVersions: readonly string[]): FileKind {
  return {
    kind,
    apiVersions,
    async load({ file, document }) {
      if (document === undefined || !isPlainObject(document.value)) throw new Error(`${file}: it is not an object`);
      const { value, duplicates } = document;
      const locationOf = (path: string): string => `${file}:${document.line(path) ?? 1}`;
      await pluginChecks[plugin]?.({ value, duplicates, locationOf });
    },
  };
}

function hasUsers(value: unknown): boolean {
  return isPlainObject(value) && Array.isArray(value.users) && value["current-context"] === undefined;
}
