/** The admission chain and attributes of a request. */
import type { ObjectKind, Operation } from "../../admission/chain/attributes.ts";
import type { AdmissionContext } from "../../admission/chain/chain.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { Admission } from "../../registry/write/request.ts";
import { type RequestContext, userOf } from "../request/request-context.ts";
import type { ResourceTarget } from "./target.ts";

interface SentOptions {
  readonly dryRun: boolean;
  /** Set when the objects are of another kind than the target's. */
  readonly objectKind?: ObjectKind | undefined;
  /** Set when the client sent options in the body. */
  readonly options?: ApiObject | undefined;
}

export function createAdmission(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
  sent: SentOptions,
): Admission {
  return { chain: target.settings.admission, context: new RequestAdmissionContext(target, context, params, sent) };
}

export function objectKindOf({ kind, group }: Pick<ResourceTarget, "kind" | "group">): ObjectKind {
  return { group, version: kind.version, kind: kind.kind, schema: kind.schema };
}

/** Computes attributes of the request on access, because most plugins use only a few. */
class RequestAdmissionContext implements AdmissionContext {
  readonly kind: Kind;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  readonly dryRun: boolean;
  readonly #target: ResourceTarget;
  readonly #context: RequestContext;
  readonly #sent: SentOptions;

  constructor(
    target: ResourceTarget,
    context: RequestContext,
    params: Readonly<Record<string, string>>,
    sent: SentOptions,
  ) {
    this.kind = target.kind;
    this.group = target.group;
    this.namespace = params.namespace ?? "";
    this.name = params.name ?? "";
    this.dryRun = sent.dryRun;
    this.#target = target;
    this.#context = context;
    this.#sent = sent;
  }

  get subresource(): string {
    return this.#context.info.subresource;
  }

  get objectKind(): ObjectKind {
    return this.#sent.objectKind ?? objectKindOf(this.#target);
  }

  get user(): UserInfo {
    return userOf(this.#context);
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  warn(text: string): void {
    this.#context.warnings.push(text);
  }

  annotate(key: string, value: string): void {
    this.#context.annotations.add(key, value);
  }

  /** A patch has the options of the create or update that it results in, as in Kubernetes. */
  optionsFor(operation: Operation): ApiObject | undefined {
    if (operation === "CONNECT") return undefined;
    if (operation === "DELETE") return { kind: "DeleteOptions", apiVersion: META_API_VERSION, ...this.#sent.options };
    const { query } = this.#context.info;
    const dryRun = query.getAll("dryRun");
    const [fieldManager, fieldValidation] = [query.get("fieldManager"), query.get("fieldValidation")];
    const options = {
      kind: operation === "CREATE" ? "CreateOptions" : "UpdateOptions",
      apiVersion: META_API_VERSION,
      ...(dryRun.length === 0 ? {} : { dryRun }),
      ...(fieldManager ? { fieldManager } : {}),
      ...(fieldValidation ? { fieldValidation } : {}),
    };
    return options;
  }
}

const META_API_VERSION = "meta.k8s.io/v1";
