/** Validates the configuration of a JWT issuer and compiles its expressions. */
import { X509Certificate } from "node:crypto";
import { nameFormats } from "../../../api/meta/validation/name-formats.ts";
import { dns1123Subdomain } from "../../../api/meta/validation/names.ts";
import { compile, describeFailure, type Program } from "../../../cel/cel.ts";
import { createEnvironment, type Environment } from "../../../cel/environment.ts";
import { boolType, dynType, listType, mapType, objectType, stringType, type Type } from "../../../cel/values/types.ts";
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import type { Algorithm } from "../../service-account/jws.ts";
import { JWT_ALGORITHMS } from "./algorithms.ts";
import type { JwtAuthenticator } from "./authentication-configuration-schema.ts";

/** A claim by name, or an expression over all claims. */
export type ClaimSource = { readonly claim: string; readonly prefix: string } | { readonly program: Program };

export interface Rule {
  readonly program: Program;
  readonly message: string;
}

export interface CompiledIssuer {
  readonly url: string;
  readonly discoveryUrl: string;
  /** PEM. */
  readonly certificateAuthority: string | undefined;
  readonly audiences: readonly string[];
  readonly algorithms: readonly Algorithm[];
  readonly requiredClaims: readonly { readonly claim: string; readonly value: string }[];
  readonly claimRules: readonly Rule[];
  readonly username: ClaimSource;
  readonly groups: ClaimSource | undefined;
  readonly uid: ClaimSource | undefined;
  readonly extra: readonly { readonly key: string; readonly program: Program }[];
  readonly userRules: readonly Rule[];
}

const claimsEnvironment = createEnvironment({
  variables: { claims: mapType(stringType, dynType) },
  nameFormats: nameFormats,
});
const userEnvironment = createEnvironment({
  variables: {
    user: objectType("kubernetes.UserInfo", {
      username: stringType,
      uid: stringType,
      groups: listType(stringType),
      extra: mapType(stringType, listType(stringType)),
    }),
  },
  nameFormats: nameFormats,
});

/** `issuer` is set if there are no errors. `ownIssuers` are the issuers of this server. */
export function compileIssuer(
  config: JwtAuthenticator,
  path: string,
  ownIssuers: readonly string[],
  algorithms: readonly Algorithm[] = JWT_ALGORITHMS,
): { readonly issuer: CompiledIssuer | undefined; readonly errors: readonly FieldError[] } {
  const compiler = new IssuerCompiler();
  const { issuer = {}, claimMappings: mappings = {}, claimValidationRules = [], userValidationRules = [] } = config;
  compiler.issuer(issuer, `${path}.issuer`, ownIssuers);
  const { required, rules } = compiler.claimRules(claimValidationRules, `${path}.claimValidationRules`);
  const at = `${path}.claimMappings`;
  const username = compiler.source(mappings.username ?? {}, `${at}.username`, { required: true, prefixed: true });
  const groups = compiler.source(mappings.groups ?? {}, `${at}.groups`, { required: false, prefixed: true });
  const uid = compiler.source(mappings.uid ?? {}, `${at}.uid`, { required: false, prefixed: false });
  const extra = compiler.extra(mappings.extra ?? [], `${at}.extra`);
  if (username !== undefined && "program" in username) {
    const others = [username.program, ...extra.map(({ program }) => program), ...rules.map(({ program }) => program)];
    if (selectsClaim(username.program, "email") && !others.some((program) => selectsClaim(program, "email_verified"))) {
      const expression = `${at}.username.expression`;
      const detail =
        "claims.email_verified must be used in claimMappings.username.expression or " +
        "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in " +
        "claimMappings.username.expression";
      compiler.errors.push(invalidField(expression, username.program.source, detail));
    }
  }
  const userRules = compiler.userRules(userValidationRules, `${path}.userValidationRules`);
  const { errors } = compiler;
  if (errors.length > 0 || username === undefined) return { issuer: undefined, errors };
  const url = issuer.url ?? "";
  return {
    errors,
    issuer: {
      url,
      discoveryUrl: issuer.discoveryURL || discoveryUrlOf(url),
      certificateAuthority: issuer.certificateAuthority || undefined,
      audiences: issuer.audiences ?? [],
      algorithms,
      requiredClaims: required,
      claimRules: rules,
      username,
      groups,
      uid,
      extra,
      userRules,
    },
  };
}

/** The discovery document of an issuer (OpenID Connect Discovery 1.0). */
export function discoveryUrlOf(issuerUrl: string): string {
  return `${issuerUrl.replace(/\/$/, "")}/.well-known/openid-configuration`;
}

type Section<K extends keyof JwtAuthenticator> = NonNullable<JwtAuthenticator[K]>;
type Mappings = Section<"claimMappings">;

/** Collects all errors. */
class IssuerCompiler {
  readonly errors: FieldError[] = [];

  issuer(issuer: Section<"issuer">, path: string, ownIssuers: readonly string[]): void {
    const { url = "", discoveryURL = "", certificateAuthority = "", audiences = [], audienceMatchPolicy = "" } = issuer;
    if (url === "") this.errors.push(requiredField(`${path}.url`));
    else this.#url(url, `${path}.url`, ownIssuers);
    if (discoveryURL !== "") {
      const field = `${path}.discoveryURL`;
      const bare = (text: string): string => text.replace(/\/+$/, "");
      if (url !== "" && bare(url) === bare(discoveryURL)) {
        this.errors.push(invalidField(field, discoveryURL, "discoveryURL must be different from URL"));
      }
      this.#url(discoveryURL, field, []);
    }
    if (audiences.length === 0) {
      this.errors.push(requiredField(`${path}.audiences`, `at least one ${path}.audiences is required`));
    }
    for (const [index, audience] of audiences.entries()) {
      const field = `${path}.audiences[${index}]`;
      if (audience === "") this.errors.push(requiredField(field));
      if (audiences.indexOf(audience) < index) this.errors.push(duplicateField(field, audience));
    }
    this.#audienceMatchPolicy(audienceMatchPolicy, audiences.length, `${path}.audienceMatchPolicy`);
    if (certificateAuthority !== "" && !isCertificateBundle(certificateAuthority)) {
      const detail = "data does not contain any valid RSA or ECDSA certificates";
      this.errors.push(invalidField(`${path}.certificateAuthority`, "<omitted>", detail));
    }
  }

  claimRules(rules: Section<"claimValidationRules">, path: string) {
    const required: { claim: string; value: string }[] = [];
    const compiled: Rule[] = [];
    for (const [index, { claim = "", requiredValue = "", expression = "", message = "" }] of rules.entries()) {
      const at = `${path}[${index}]`;
      const before = rules.slice(0, index);
      if (claim !== "" && expression !== "") {
        this.errors.push(invalidField(at, claim, "claim and expression can't both be set"));
      } else if (claim !== "") {
        if (message !== "") {
          this.errors.push(invalidField(`${at}.message`, message, "may not be specified when claim is set"));
        }
        if (before.some((other) => other.claim === claim)) this.errors.push(duplicateField(`${at}.claim`, claim));
        required.push({ claim, value: requiredValue });
      } else if (expression !== "") {
        if (requiredValue !== "") {
          const detail = "may not be specified when expression is set";
          this.errors.push(invalidField(`${at}.requiredValue`, requiredValue, detail));
        }
        const repeated = before.some((other) => other.expression === expression);
        const program = this.#expression(expression, `${at}.expression`, claimsEnvironment, {
          repeated,
          result: boolType,
        });
        if (program !== undefined) compiled.push({ program, message });
      } else this.errors.push(requiredField(at, "claim or expression is required"));
    }
    return { required, rules: compiled };
  }

  source(
    { claim = "", expression = "", prefix }: NonNullable<Mappings["username"]>,
    path: string,
    { required, prefixed }: { readonly required: boolean; readonly prefixed: boolean },
  ): ClaimSource | undefined {
    if (claim !== "" && expression !== "") {
      this.errors.push(invalidField(path, "", "claim and expression can't both be set"));
      return undefined;
    }
    if (expression !== "") {
      if (prefix !== undefined) {
        this.errors.push(invalidField(`${path}.prefix`, prefix, "may not be specified when expression is set"));
      }
      const program = this.#expression(expression, `${path}.expression`, claimsEnvironment);
      return program === undefined ? undefined : { program };
    }
    if (claim === "") {
      if (required) this.errors.push(requiredField(path, "claim or expression is required"));
      return undefined;
    }
    if (prefixed && prefix === undefined) {
      const detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
      this.errors.push(requiredField(`${path}.prefix`, detail));
    }
    return { claim, prefix: prefix ?? "" };
  }

  extra(mappings: NonNullable<Mappings["extra"]>, path: string): { key: string; program: Program }[] {
    return mappings.flatMap(({ key = "", valueExpression = "" }, index) => {
      const at = `${path}[${index}]`;
      this.#extraKey(key, `${at}.key`);
      if (mappings.slice(0, index).some((other) => other.key === key)) {
        this.errors.push(duplicateField(`${at}.key`, key));
        return [];
      }
      if (valueExpression === "") {
        this.errors.push(requiredField(`${at}.valueExpression`));
        return [];
      }
      const program = this.#expression(valueExpression, `${at}.valueExpression`, claimsEnvironment);
      return program === undefined ? [] : [{ key, program }];
    });
  }

  userRules(rules: Section<"userValidationRules">, path: string): Rule[] {
    return rules.flatMap(({ expression = "", message = "" }, index) => {
      const at = `${path}[${index}].expression`;
      if (expression === "") {
        this.errors.push(requiredField(at));
        return [];
      }
      const repeated = rules.slice(0, index).some((other) => other.expression === expression);
      const program = this.#expression(expression, at, userEnvironment, { repeated, result: boolType });
      return program === undefined ? [] : [{ program, message }];
    });
  }

  #url(text: string, path: string, disallowed: readonly string[]): void {
    const addError = (detail: string): void => void this.errors.push(invalidField(path, text, detail));
    if (disallowed.includes(text))
      addError(`URL must not overlap with disallowed issuers: [${[...disallowed].sort().join(" ")}]`);
    const url = URL.parse(text);
    if (url === null) {
      addError("it is not a URL");
      return;
    }
    if (url.protocol !== "https:") addError("URL scheme must be https");
    if (url.username !== "" || url.password !== "") addError("URL must not contain a username or password");
    if (url.search !== "") addError("URL must not contain a query");
    if (url.hash !== "") addError("URL must not contain a fragment");
  }

  #audienceMatchPolicy(policy: string, audiences: number, path: string): void {
    if (audiences > 1 && policy !== "MatchAny") {
      this.errors.push(invalidField(path, policy, "audienceMatchPolicy must be MatchAny for multiple audiences"));
    }
    if (audiences === 1 && policy !== "" && policy !== "MatchAny") {
      this.errors.push(invalidField(path, policy, "audienceMatchPolicy must be empty or MatchAny for single audience"));
    }
  }

  #extraKey(key: string, path: string): void {
    const addError = (detail: string): void => void this.errors.push(invalidField(path, key, detail));
    if (key === "") return void this.errors.push(requiredField(path));
    const slash = key.indexOf("/");
    const [domain, rest] = [key.slice(0, Math.max(slash, 0)), key.slice(slash + 1)];
    if (slash < 0) addError('must be a domain-prefixed path (such as "acme.io/foo")');
    else if (rest === "") addError('must be a domain-prefixed path (such as "acme.io/foo")');
    else {
      for (const detail of dns1123Subdomain(domain)) addError(detail);
      if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest)) addError("Invalid path");
    }
    if (key !== key.toLowerCase()) addError("must be lowercase");
    if (/(^|\.)(kubernetes|k8s)\.io$/.test(domain)) {
      addError("k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
    }
  }

  #expression(
    source: string,
    path: string,
    names: Environment,
    { repeated = false, result }: { readonly repeated?: boolean; readonly result?: Type } = {},
  ): Program | undefined {
    if (repeated) {
      this.errors.push(duplicateField(path, source));
      return undefined;
    }
    const compiled = compile(source, names, result === undefined ? {} : { result });
    if (compiled.program !== undefined) return compiled.program;
    this.errors.push(invalidField(path, source, describeFailure(compiled, source)));
    return undefined;
  }
}

/** Whether the expression selects the claim. */
function selectsClaim({ source }: Program, claim: string): boolean {
  const code = source.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '""');
  return new RegExp(`\\bclaims\\s*\\.\\s*\\??\\s*${claim}\\b`).test(code);
}

function isCertificateBundle(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
    return blocks.length > 0;
  } catch {
    return false;
  }
}
