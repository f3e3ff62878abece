/** One issuer of identity tokens: what may be said of it, and what it means once its expressions are compiled. */
import { X509Certificate } from "node:crypto";
import { nameFormats } from "../../../api/meta/validation/name-formats.ts";
import { dns1123Subdomain } from "../../../api/meta/validation/names.ts";
import { compile, type Program } from "../../../cel/cel.ts";
import { type Environment, createEnvironment } from "../../../cel/environment.ts";
import { renderErrors } from "../../../cel/parse/source.ts";
import { boolType, dynType, listType, mapType, objectType, stringType, type Type } from "../../../cel/values/types.ts";
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import type { Algorithm } from "../../service-account/jws.ts";
import { JWT_ALGORITHMS } from "./algorithms.ts";
import type { JwtAuthenticator } from "./authentication-configuration.ts";

/** A claim by its name, or what an expression makes of all of them. */
export type Source = { readonly claim: string; readonly prefix: string } | { readonly program: Program };

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
  readonly username: Source;
  readonly groups: Source | undefined;
  readonly uid: Source | undefined;
  readonly extra: readonly { readonly key: string; readonly program: Program }[];
  readonly userRules: readonly Rule[];
}

const claimNames = createEnvironment({ variables: { claims: mapType(stringType, dynType) }, nameFormats: nameFormats });
const userNames = createEnvironment({
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

/** `issuer` is there when there is nothing wrong. `ownIssuers` are the names of this server. */
export function compileIssuer(
  config: JwtAuthenticator,
  path: string,
  ownIssuers: readonly string[],
  algorithms: readonly Algorithm[] = JWT_ALGORITHMS,
): { readonly issuer: CompiledIssuer | undefined; readonly errors: readonly FieldError[] } {
  const compiler = new Compiler();
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
    if (selects(username.program, "email") && !others.some((program) => selects(program, "email_verified"))) {
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

/** Where OpenID Connect has issuers tell of themselves. */
export function discoveryUrlOf(issuerUrl: string): string {
  return `${issuerUrl.replace(/\/$/, "")}/.well-known/openid-configuration`;
}

type Named<K extends keyof JwtAuthenticator> = NonNullable<JwtAuthenticator[K]>;
type Mappings = Named<"claimMappings">;

/** Gathers all mistakes, so that they are told at once. */
class Compiler {
  readonly errors: FieldError[] = [];

  issuer(issuer: Named<"issuer">, path: string, ownIssuers: readonly string[]): void {
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
    for (const [place, audience] of audiences.entries()) {
      const field = `${path}.audiences[${place}]`;
      if (audience === "") this.errors.push(requiredField(field));
      if (audiences.indexOf(audience) < place) this.errors.push(duplicateField(field, audience));
    }
    this.#audienceMatchPolicy(audienceMatchPolicy, audiences.length, `${path}.audienceMatchPolicy`);
    if (certificateAuthority !== "" && !isBundle(certificateAuthority)) {
      const detail = "data does not contain any valid RSA or ECDSA certificates";
      this.errors.push(invalidField(`${path}.certificateAuthority`, "<omitted>", detail));
    }
  }

  claimRules(rules: Named<"claimValidationRules">, path: string) {
    const required: { claim: string; value: string }[] = [];
    const compiled: Rule[] = [];
    for (const [place, { claim = "", requiredValue = "", expression = "", message = "" }] of rules.entries()) {
      const at = `${path}[${place}]`;
      const before = rules.slice(0, place);
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
        const program = this.#expression(expression, `${at}.expression`, claimNames, { repeated, result: boolType });
        if (program !== undefined) compiled.push({ program, message });
      } else this.errors.push(requiredField(at, "claim or expression is required"));
    }
    return { required, rules: compiled };
  }

  source(
    { claim = "", expression = "", prefix }: NonNullable<Mappings["username"]>,
    path: string,
    { required, prefixed }: { readonly required: boolean; readonly prefixed: boolean },
  ): Source | undefined {
    if (claim !== "" && expression !== "") {
      this.errors.push(invalidField(path, "", "claim and expression can't both be set"));
      return undefined;
    }
    if (expression !== "") {
      if (prefix !== undefined) {
        this.errors.push(invalidField(`${path}.prefix`, prefix, "may not be specified when expression is set"));
      }
      const program = this.#expression(expression, `${path}.expression`, claimNames);
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
    return mappings.flatMap(({ key = "", valueExpression = "" }, place) => {
      const at = `${path}[${place}]`;
      this.#extraKey(key, `${at}.key`);
      if (mappings.slice(0, place).some((other) => other.key === key)) {
        this.errors.push(duplicateField(`${at}.key`, key));
        return [];
      }
      if (valueExpression === "") {
        this.errors.push(requiredField(`${at}.valueExpression`));
        return [];
      }
      const program = this.#expression(valueExpression, `${at}.valueExpression`, claimNames);
      return program === undefined ? [] : [{ key, program }];
    });
  }

  userRules(rules: Named<"userValidationRules">, path: string): Rule[] {
    return rules.flatMap(({ expression = "", message = "" }, place) => {
      const at = `${path}[${place}].expression`;
      if (expression === "") {
        this.errors.push(requiredField(at));
        return [];
      }
      const repeated = rules.slice(0, place).some((other) => other.expression === expression);
      const program = this.#expression(expression, at, userNames, { repeated, result: boolType });
      return program === undefined ? [] : [{ program, message }];
    });
  }

  #url(text: string, path: string, refused: readonly string[]): void {
    const wrong = (detail: string): void => void this.errors.push(invalidField(path, text, detail));
    if (refused.includes(text))
      wrong(`URL must not overlap with disallowed issuers: [${[...refused].sort().join(" ")}]`);
    const url = URL.parse(text);
    if (url === null) {
      wrong("it is no URL");
      return;
    }
    if (url.protocol !== "https:") wrong("URL scheme must be https");
    if (url.username !== "" || url.password !== "") wrong("URL must not contain a username or password");
    if (url.search !== "") wrong("URL must not contain a query");
    if (url.hash !== "") wrong("URL must not contain a fragment");
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
    const wrong = (detail: string): void => void this.errors.push(invalidField(path, key, detail));
    if (key === "") return void this.errors.push(requiredField(path));
    const slash = key.indexOf("/");
    const [domain, rest] = [key.slice(0, Math.max(slash, 0)), key.slice(slash + 1)];
    if (slash < 0) wrong('must be a domain-prefixed path (such as "acme.io/foo")');
    else if (rest === "") wrong('must be a domain-prefixed path (such as "acme.io/foo")');
    else {
      for (const detail of dns1123Subdomain(domain)) wrong(detail);
      if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest)) wrong("Invalid path");
    }
    if (key !== key.toLowerCase()) wrong("must be lowercase");
    if (/(^|\.)(kubernetes|k8s)\.io$/.test(domain)) {
      wrong("k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
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
    const { program, errors } = compile(source, names, result === undefined ? {} : { result });
    if (errors === undefined) return program;
    const isTyped = errors.length === 1 && errors[0]!.message.startsWith("must evaluate to");
    const detail = isTyped ? errors[0]!.message : `compilation failed: ${renderErrors(errors, source)}`;
    this.errors.push(invalidField(path, source, detail));
    return undefined;
  }
}

/** Whether the expression looks at the claim, in one of the ways to write it down. */
function selects({ source }: Program, claim: string): boolean {
  const code = source.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '""');
  return new RegExp(`\\bclaims\\s*\\.\\s*\\??\\s*${claim}\\b`).test(code);
}

function isBundle(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
    return blocks.length > 0;
  } catch {
    return false;
  }
}
