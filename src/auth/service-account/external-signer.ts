/** Somebody else who keeps the keys of service accounts' tokens: asked over gRPC on a local socket (`externaljwt`). */
import { createPublicKey } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import { binary, boolean, int32, int64, list, message, optional, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { payloadOf } from "./claims.ts";
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
/** For those who play the signer in tests. */
export const signerMethods = methods;
export const SIGNER_SERVICE = "/v1alpha1.ExternalJWTSigner/";

export interface ExternalSigner extends Disposable {
  readonly issuer: TokenIssuer;
  /** Tokens last no longer. */
  readonly maxSeconds: number;
  /** All keys that tokens may be signed with. `named` is looked for anew where it is not known. */
  verificationKeys(named?: string): Promise<readonly VerificationKey[]>;
  /** Another number whenever keys have come or gone. Looks for them, unheard, when it is time to. */
  version(): number;
  /** Those that others are told of. */
  publishedKeys(): Promise<readonly VerificationKey[]>;
}

/** Hears of what is measured. */
export interface SignerObserver {
  /** It was asked: the method's whole name, what came of it in gRPC's words (`OK`, `Unavailable`), how long it took. */
  called(method: string, code: string, milliseconds: number): void;
  /** It told its keys, and since when they are as they are, in seconds since 1970. */
  keysOf(dataSeconds: number): void;
}

type Methods = typeof methods;
type Call = <M extends keyof Methods>(name: M, request: object) => Promise<Infer<Methods[M]["response"]>>;

const CALL_TIMEOUT_MS = 10_000;
/** Tokens can name keys there are not: the signer is not asked more often for that. */
const LOOK_AGAIN_MS = 1_000;
const SECONDS_MIN = 600;
const KEY_ID_MAX = 1024;

/** Asks how long its tokens may last. Throws, naming the socket, when it cannot be asked or makes no sense. */
export async function openExternalSigner(
  socket: string,
  issuer: string,
  clock: Clock,
  observe?: SignerObserver,
): Promise<ExternalSigner> {
  const client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure());
  const call = caller(client, clock, observe);
  try {
    const { maxTokenExpirationSeconds: maxSeconds = 0 } = await call("Metadata", {});
    if (maxSeconds < SECONDS_MIN) {
      throw new Error(`it lets tokens last for ${maxSeconds} seconds: at least ${SECONDS_MIN} are needed`);
    }
    const keys = new SignerKeys(call, clock, observe);
    await keys.refresh();
    return {
      maxSeconds,
      issuer: {
        async issue(claims) {
          const payload = Buffer.from(JSON.stringify(payloadOf({ ...claims, issuer }))).toString("base64url");
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

function caller(client: grpc.Client, clock: Clock, observe: SignerObserver | undefined): Call {
  return (name, request) =>
    new Promise((resolve, reject) => {
      const method = methods[name];
      const path = `${SIGNER_SERVICE}${name}`;
      const began = clock.monotonic();
      // On our own clock: gRPC's deadlines are times of the day, which the host may change.
      const timer = clock.timer(CALL_TIMEOUT_MS, () => asked.cancel());
      const asked = client.makeUnaryRequest(
        path,
        (value: unknown) => Buffer.from(encodeProtobuf(method.request, value)),
        (bytes: Buffer) => decodeProtobuf(method.response as ObjectSchema, bytes) as never,
        request,
        (error, response) => {
          timer.cancel();
          observe?.called(path, codeName(error?.code ?? grpc.status.OK), clock.monotonic() - began);
          if (error === null) resolve(response as never);
          else reject(error);
        },
      );
    });
}

function isSame(some: readonly VerificationKey[], others: readonly VerificationKey[]): boolean {
  const isKey = (one: VerificationKey, other: VerificationKey | undefined): boolean =>
    one.keyId === other?.keyId && one.publicKey.equals(other.publicKey);
  return some.length === others.length && some.every((one, place) => isKey(one, others[place]));
}

/** As Go's libraries spell codes: `OK`, `DeadlineExceeded`, and with one l `Canceled`. */
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
  #hidden: ReadonlySet<string> = new Set();
  #version = 0;
  /** On the monotonic clock. */
  #fetched = Number.NEGATIVE_INFINITY;
  #goodForMs = 0;
  #fetching: Promise<void> | undefined;

  constructor(call: Call, clock: Clock, observe: SignerObserver | undefined) {
    this.#call = call;
    this.#clock = clock;
    this.#observe = observe;
  }

  async all(named?: string): Promise<readonly VerificationKey[]> {
    const age = this.#clock.monotonic() - this.#fetched;
    const isStrange = named !== undefined && !this.#keys.some(({ keyId }) => keyId === named);
    // Keys known before are still good when the signer is away.
    if (age >= this.#goodForMs || (isStrange && age >= LOOK_AGAIN_MS)) await this.refresh().catch(() => {});
    // It may be among those that are just being told.
    else if (isStrange) await this.#fetching?.catch(() => {});
    return this.#keys;
  }

  async published(): Promise<readonly VerificationKey[]> {
    return (await this.all()).filter(({ keyId }) => !this.isHidden(keyId));
  }

  version(): number {
    const age = this.#clock.monotonic() - this.#fetched;
    if (age >= this.#goodForMs) void this.refresh().catch(() => {});
    return this.#version;
  }

  isHidden(keyId: string): boolean {
    return this.#hidden.has(keyId);
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
    if (refreshHintSeconds <= 0) throw new Error("it does not say when to ask for its keys again");
    if (keys.length === 0) throw new Error("it has no keys");
    const found = keys.map(({ keyId = "", key = new Uint8Array() }) => keyOf(keyId, key));
    if (!isSame(found, this.#keys)) this.#version++;
    this.#keys = found;
    this.#hidden = new Set(
      keys.filter((each) => each.excludeFromOidcDiscovery === true).map(({ keyId = "" }) => keyId),
    );
    this.#goodForMs = refreshHintSeconds * 1000;
    this.#observe?.keysOf(dataTimestamp.seconds ?? 0);
  }
}

function keyOf(keyId: string, der: Uint8Array): VerificationKey {
  if (keyId === "" || keyId.length > KEY_ID_MAX) throw new Error("a key has no identifier, or too long a one");
  const publicKey = createPublicKey({ key: Buffer.from(der), format: "der", type: "spki" });
  const algorithm = algorithmOf(publicKey);
  if (algorithm === undefined) throw new Error(`the key ${JSON.stringify(keyId)} is of a sort that signs no tokens`);
  return { keyId, algorithm, publicKey };
}

/** Throws for what our own verifier, or that of others, would not believe. */
async function checkHeader(header: string, keys: SignerKeys): Promise<void> {
  let members: Readonly<Record<string, unknown>>;
  try {
    members = JSON.parse(Buffer.from(header, "base64url").toString()) as typeof members;
  } catch (cause) {
    throw new Error("The external signer's header is no JSON", { cause });
  }
  const { alg, kid, typ, ...more } = members;
  const wrong = (what: string): never => {
    throw new Error(`The external signer's header ${what}`);
  };
  if (Object.keys(more).length > 0) wrong(`has members that nobody knows: ${Object.keys(more).join(", ")}`);
  if (typ !== "JWT") wrong("is not of type JWT");
  if (!ACCOUNT_ALGORITHMS.some((each) => each === alg)) wrong(`names the algorithm ${JSON.stringify(alg)}`);
  if (typeof kid !== "string" || kid === "" || kid.length > KEY_ID_MAX) return wrong("names no key");
  await keys.all(kid);
  if (keys.isHidden(kid)) wrong(`names the key ${JSON.stringify(kid)}, which is not published`);
}
