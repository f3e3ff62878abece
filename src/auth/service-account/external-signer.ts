/** The external signer of service account tokens: gRPC on a local socket (`externaljwt`). */
import { createPublicKey } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import { binary, boolean, int32, int64, list, message, optional, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { createPayload } from "./claims.ts";
import type { TokenIssuer } from "./issuer.ts";
import { ACCOUNT_ALGORITHMS, algorithmOf } from "./jws.ts";
import type { VerificationKey } from "./keys.ts";

const methods = {
  Sign: {
    request: message("v1alpha1.SignJWTRequest", { claims: optional(1, string) }),
    response: message("v1alpha1.SignJWTResponse", { header: optional(1, string), signature: optional(2, string) }),
  },
  FetchKeys: {
    request: message("v1alpha1.FetchKeysRequest", {}),
    response: message("v1alpha1.FetchKeysResponse", {
      keys: optional(
        1,
        list(
          message("v1alpha1.Key", {
            keyId: optional(1, string),
            key: optional(2, binary),
            excludeFromOidcDiscovery: optional(3, boolean),
          }),
        ),
      ),
      dataTimestamp: optional(
        2,
        message("google.protobuf.Timestamp", { seconds: optional(1, int64), nanos: optional(2, int32) }),
      ),
      refreshHintSeconds: optional(3, int64),
    }),
  },
  Metadata: {
    request: message("v1alpha1.MetadataRequest", {}),
    response: message("v1alpha1.MetadataResponse", { maxTokenExpirationSeconds: optional(1, int64) }),
  },
} as const satisfies Readonly<Record<string, { readonly request: ObjectSchema; readonly response: ObjectSchema }>>;
/** Exported for the fake signer of the tests. */
export const signerMethods = methods;
export const SIGNER_SERVICE = "/v1alpha1.ExternalJWTSigner/";

export interface ExternalSigner extends Disposable {
  readonly issuer: TokenIssuer;
  /** The maximum lifetime of tokens. */
  readonly maxTokenSeconds: number;
  /** All keys that may sign tokens. An unknown `keyId` causes a refresh. */
  verificationKeys(keyId?: string): Promise<readonly VerificationKey[]>;
  /** Changes when keys are added or removed. Starts a refresh in the background when one is due. */
  version(): number;
  /** The keys for discovery. */
  publishedKeys(): Promise<readonly VerificationKey[]>;
}

/** Metrics of the external signer. */
export interface SignerObserver {
  /** A call ended: the method's full name, the gRPC status (`OK`, `Unavailable`) and the duration. */
  called(method: string, code: string, milliseconds: number): void;
  /** Keys were fetched; `dataSeconds` is the time of their last change, in seconds since 1970. */
  keysFetched(dataSeconds: number): void;
}

type Methods = typeof methods;
type Call = <M extends keyof Methods>(name: M, request: object) => Promise<Infer<Methods[M]["response"]>>;

const CALL_TIMEOUT_MS = 10_000;
/** Minimum interval of refreshes for unknown key IDs. */
const REFRESH_INTERVAL_MIN_MS = 1_000;
const MAX_TOKEN_SECONDS_MIN = 600;
const KEY_ID_MAX = 1024;

/**
 * Reads the metadata. Throws an error that names the socket, if the signer is unavailable or its metadata is invalid.
 */
export async function openExternalSigner(
  socket: string,
  issuer: string,
  clock: Clock,
  observe?: SignerObserver,
): Promise<ExternalSigner> {
  const client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure());
  const call = createCaller(client, clock, observe);
  try {
    const { maxTokenExpirationSeconds: maxTokenSeconds = 0 } = await call("Metadata", {});
    if (maxTokenSeconds < MAX_TOKEN_SECONDS_MIN) {
      throw new Error(
        `its maximum token expiration is ${maxTokenSeconds} seconds: it must be at least ${MAX_TOKEN_SECONDS_MIN}`,
      );
    }
    const keys = new SignerKeys(call, clock, observe);
    await keys.refresh();
    return {
      maxTokenSeconds,
      issuer: {
        async issue(claims) {
          const payload = Buffer.from(JSON.stringify(createPayload({ ...claims, issuer }))).toString("base64url");
          const { header = "", signature = "" } = await call("Sign", { claims: payload });
          await checkHeader(header, keys);
          return `${header}.${payload}.${signature}`;
        },
      },
      verificationKeys: (named) => keys.all(named),
      version: () => keys.version(),
      publishedKeys: () => keys.published(),
      [Symbol.dispose]: () => client.close(),
    };
  } catch (cause) {
    client.close();
    throw new Error(`Cannot use the signer at ${socket}: ${(cause as Error).message}`, { cause });
  }
}

function createCaller(client: grpc.Client, clock: Clock, observe: SignerObserver | undefined): Call {
  return (name, request) =>
    new Promise((resolve, reject) => {
      const method = methods[name];
      const path = `${SIGNER_SERVICE}${name}`;
      const start = clock.monotonic();
      // A monotonic timer: gRPC deadlines use the wall clock, which may be set.
      const timer = clock.timer(CALL_TIMEOUT_MS, () => pending.cancel());
      const pending = client.makeUnaryRequest(
        path,
        (value: unknown) => Buffer.from(encodeProtobuf(method.request, value)),
        (bytes: Buffer) => decodeProtobuf(method.response as ObjectSchema, bytes) as never,
        request,
        (error, response) => {
          timer.cancel();
          observe?.called(path, codeName(error?.code ?? grpc.status.OK), clock.monotonic() - start);
          if (error === null) resolve(response as never);
          else reject(error);
        },
      );
    });
}

function isSameKeys(some: readonly VerificationKey[], others: readonly VerificationKey[]): boolean {
  const isKey = (one: VerificationKey, other: VerificationKey | undefined): boolean =>
    one.keyId === other?.keyId && one.publicKey.equals(other.publicKey);
  return some.length === others.length && some.every((one, index) => isKey(one, others[index]));
}

/** The code as Go's gRPC library prints it: `OK`, `DeadlineExceeded`, `Canceled`. */
function codeName(code: grpc.status): string {
  if (code === grpc.status.OK) return "OK";
  if (code === grpc.status.CANCELLED) return "Canceled";
  const words = (grpc.status[code] ?? "UNKNOWN").split("_");
  return words.map((word) => word.charAt(0) + word.slice(1).toLowerCase()).join("");
}

class SignerKeys {
  readonly #call: Call;
  readonly #clock: Clock;
  readonly #observe: SignerObserver | undefined;
  #keys: readonly VerificationKey[] = [];
  #unpublished: ReadonlySet<string> = new Set();
  #version = 0;
  /** Monotonic time of the last fetch. */
  #fetched = Number.NEGATIVE_INFINITY;
  #refreshAfterMs = 0;
  #fetching: Promise<void> | undefined;

  constructor(call: Call, clock: Clock, observe: SignerObserver | undefined) {
    this.#call = call;
    this.#clock = clock;
    this.#observe = observe;
  }

  async all(keyId?: string): Promise<readonly VerificationKey[]> {
    const age = this.#clock.monotonic() - this.#fetched;
    const isUnknown = keyId !== undefined && !this.#keys.some((key) => key.keyId === keyId);
    // The previous keys stay valid while the signer is unavailable.
    if (age >= this.#refreshAfterMs || (isUnknown && age >= REFRESH_INTERVAL_MIN_MS))
      await this.refresh().catch(() => {});
    // The fetch in flight may include the key.
    else if (isUnknown) await this.#fetching?.catch(() => {});
    return this.#keys;
  }

  async published(): Promise<readonly VerificationKey[]> {
    return (await this.all()).filter(({ keyId }) => !this.isUnpublished(keyId));
  }

  version(): number {
    const age = this.#clock.monotonic() - this.#fetched;
    if (age >= this.#refreshAfterMs) void this.refresh().catch(() => {});
    return this.#version;
  }

  isUnpublished(keyId: string): boolean {
    return this.#unpublished.has(keyId);
  }

  async refresh(): Promise<void> {
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    await this.#fetching;
  }

  async #fetch(): Promise<void> {
    this.#fetched = this.#clock.monotonic();
    const { keys = [], refreshHintSeconds = 0, dataTimestamp = {} } = await this.#call("FetchKeys", {});
    if (refreshHintSeconds <= 0) throw new Error("its response has no refreshHintSeconds");
    if (keys.length === 0) throw new Error("it has no keys");
    const found = keys.map(({ keyId = "", key = new Uint8Array() }) => parseKey(keyId, key));
    if (!isSameKeys(found, this.#keys)) this.#version++;
    this.#keys = found;
    this.#unpublished = new Set(
      keys.filter((each) => each.excludeFromOidcDiscovery === true).map(({ keyId = "" }) => keyId),
    );
    this.#refreshAfterMs = refreshHintSeconds * 1000;
    this.#observe?.keysFetched(dataTimestamp.seconds ?? 0);
  }
}

function parseKey(keyId: string, der: Uint8Array): VerificationKey {
  if (keyId === "" || keyId.length > KEY_ID_MAX) throw new Error("a key has no identifier, or one that is too long");
  const publicKey = createPublicKey({ key: Buffer.from(der), format: "der", type: "spki" });
  const algorithm = algorithmOf(publicKey);
  if (algorithm === undefined) throw new Error(`the key ${JSON.stringify(keyId)} has an unsupported type`);
  return { keyId, algorithm, publicKey };
}

/** Throws for headers that verifiers would not accept. */
async function checkHeader(header: string, keys: SignerKeys): Promise<void> {
  let members: Readonly<Record<string, unknown>>;
  try {
    members = JSON.parse(Buffer.from(header, "base64url").toString()) as typeof members;
  } catch (cause) {
    throw new Error("The external signer's header is not JSON", { cause });
  }
  const { alg, kid, typ, ...more } = members;
  const reject = (what: string): never => {
    throw new Error(`The external signer's header ${what}`);
  };
  if (Object.keys(more).length > 0) reject(`has unknown members: ${Object.keys(more).join(", ")}`);
  if (typ !== "JWT") reject("is not of type JWT");
  if (!ACCOUNT_ALGORITHMS.some((each) => each === alg)) reject(`names the algorithm ${JSON.stringify(alg)}`);
  if (typeof kid !== "string" || kid === "" || kid.length > KEY_ID_MAX) return reject("has no key ID");
  await keys.all(kid);
  if (keys.isUnpublished(kid)) reject(`names the key ${JSON.stringify(kid)}, which is not published`);
}
