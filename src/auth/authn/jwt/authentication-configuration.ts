/** The file of `--authentication-config`: JWT issuers and anonymous access. */

import type { Infer } from "../../../schema/schema.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  tooMany,
  unstructured,
} from "../../../schema/validation/field-error.ts";
import { type ConfigurationKind, readConfigurationFile } from "../../configuration-file.ts";
import { authenticationConfiguration, type JwtAuthenticator } from "./authentication-configuration-schema.ts";
import { type CompiledIssuer, compileIssuer } from "./compile-issuer.ts";

export interface AuthenticationConfiguration {
  readonly issuers: readonly CompiledIssuer[];
  /** Undefined if the file does not configure it. */
  readonly anonymous: { readonly enabled: boolean; readonly paths: readonly string[] | undefined } | undefined;
}

export interface AuthenticationConfigurationOptions {
  /** Issuers of this server's service account tokens, which JWT authenticators must not use. */
  readonly ownIssuers: readonly string[];
  /** Why the file must not configure anonymous access. */
  readonly anonymousForbidden: string | undefined;
}

const ISSUERS_MAX = 64;
const VERSIONS = ["v1beta1", "v1alpha1"];

/** Throws an error with file, line and field of each mistake. */
export function parseAuthenticationConfiguration(
  path: string,
  text: string,
  rules: AuthenticationConfigurationOptions,
): AuthenticationConfiguration {
  const kind: ConfigurationKind<typeof authenticationConfiguration, AuthenticationConfiguration> = {
    kind: "AuthenticationConfiguration",
    versions: VERSIONS,
    schema: authenticationConfiguration,
    read: (value) => validate(value, rules),
  };
  return readConfigurationFile(path, text, kind);
}

function validate(
  { jwt = [], anonymous }: Infer<typeof authenticationConfiguration>,
  rules: AuthenticationConfigurationOptions,
) {
  if (jwt.length > ISSUERS_MAX) return { errors: [tooMany("jwt", jwt.length, ISSUERS_MAX)] };
  const compiled = jwt.map((each, index) => compileIssuer(each, `jwt[${index}]`, rules.ownIssuers));
  const errors: FieldError[] = [...compiled.flatMap((each) => each.errors), ...findDuplicates(jwt)];
  const { enabled = false, conditions = [] } = anonymous ?? {};
  if (anonymous !== undefined && rules.anonymousForbidden !== undefined) {
    errors.push(forbiddenField("anonymous", rules.anonymousForbidden));
  }
  if (!enabled && conditions.length > 0) {
    const detail = "enabled should be set to true when conditions are defined";
    errors.push(invalidField("anonymous.conditions", unstructured(conditions), detail));
  }
  if (errors.length > 0) return { errors };
  const paths = conditions.length === 0 ? undefined : conditions.map(({ path = "" }) => path);
  const value: AuthenticationConfiguration = {
    issuers: compiled.flatMap(({ issuer }) => (issuer === undefined ? [] : [issuer])),
    anonymous: anonymous === undefined ? undefined : { enabled, paths },
  };
  return { value };
}

function findDuplicates(jwt: readonly JwtAuthenticator[]): readonly FieldError[] {
  const members = [
    ["url", jwt.map(({ issuer }) => issuer?.url ?? "")],
    ["discoveryURL", jwt.map(({ issuer }) => issuer?.discoveryURL ?? "")],
  ] as const;
  return members.flatMap(([member, urls]) =>
    urls.flatMap((url, index) => {
      const field = `jwt[${index}].issuer.${member}`;
      return url !== "" && urls.indexOf(url) < index
        ? [{ type: "FieldValueDuplicate", field, badValue: url, detail: "" } as const]
        : [];
    }),
  );
}
