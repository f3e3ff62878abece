/** A KMS plugin of both versions on a socket. "Encrypted" is a key ID and the bytes inverted. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { kmsV1, kmsV2 } from "../../storage/encryption/kms/protocol.ts";

type Row = readonly [name: string, definition: grpc.MethodDefinition<object, object>];
type Handlers = Readonly<Record<string, (request: never) => object>>;

export class FakeKms implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "svc-kms-"));
  #server: grpc.Server | undefined;
  /** The paths of the calls. */
  readonly calls: string[] = [];
  keyId = "key-1";
  /** Of `Encrypt`, if it differs from that of the status. */
  encryptKeyId: string | undefined;
  healthz = "ok";
  version = "v2";
  versionOfV1 = "v1beta1";
  annotations: Readonly<Record<string, Uint8Array>> = { "version.encryption.example.com": Buffer.from("1") };
  /** Awaited before each response; its rejection is the call's error. */
  before: (path: string) => Promise<void> = async () => {};
  /** Annotations of the last `Decrypt`. */
  received: Readonly<Record<string, Uint8Array>> | undefined;

  static async start(): Promise<FakeKms> {
    const plugin = new FakeKms();
    await plugin.start();
    return plugin;
  }

  get endpoint(): string {
    return `unix://${this.#socket}`;
  }

  get #socket(): string {
    return join(this.#folder, "kms.sock");
  }

  /** Also after a `stop`. */
  async start(): Promise<void> {
    const server = new grpc.Server();
    this.#add(server, kmsV2, {
      status: () => ({ version: this.version, healthz: this.healthz, keyId: this.keyId }),
      encrypt: ({ plaintext }: { readonly plaintext: Uint8Array }) => {
        const keyId = this.encryptKeyId ?? this.keyId;
        return { ciphertext: seal(keyId, plaintext), keyId, annotations: this.annotations };
      },
      decrypt: ({ ciphertext, annotations }: { ciphertext: Uint8Array; annotations?: Record<string, Uint8Array> }) => {
        this.received = annotations;
        return { plaintext: open(ciphertext) };
      },
    });
    this.#add(server, kmsV1, {
      version: () => ({ version: this.versionOfV1, runtimeName: "fake", runtimeVersion: "1" }),
      encrypt: ({ plain }: { readonly plain: Uint8Array }) => ({ cipher: seal(this.keyId, plain) }),
      decrypt: ({ cipher }: { readonly cipher: Uint8Array }) => ({ plain: open(cipher) }),
    });
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(this.endpoint, grpc.ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    this.#server = server;
  }

  async stop(): Promise<void> {
    this.#server?.forceShutdown();
    this.#server = undefined;
    rmSync(this.#socket, { force: true });
  }

  /** The number of calls of a method since the last one. */
  count(method: string): number {
    return this.calls.filter((path) => path.endsWith(`/${method}`)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #add(server: grpc.Server, methods: Readonly<Record<string, GrpcMethod>>, handlers: Handlers): void {
    const rows = Object.entries(methods).map(
      ([name, { path, request, response }]): Row => [
        name,
        defineUnaryMethod(path, request as ObjectSchema, response as ObjectSchema),
      ],
    );
    const implementation = rows.map(([name, { path }]) => {
      const handle: grpc.handleUnaryCall<object, object> = ({ request }, done) => {
        this.calls.push(path);
        const respond = async (): Promise<object> => {
          await this.before(path);
          return handlers[name]!(request as never);
        };
        respond().then(
          (response) => done(null, response),
          (error: Error) => done({ code: grpc.status.INTERNAL, details: error.message }),
        );
      };
      return [name, handle] as const;
    });
    server.addService(Object.fromEntries(rows), Object.fromEntries(implementation));
  }
}

function seal(keyId: string, plain: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${keyId}|`), plain.map((byte) => byte ^ 0xff)]);
}

function open(sealed: Uint8Array): Uint8Array {
  const at = sealed.indexOf("|".charCodeAt(0));
  if (at < 0) throw new Error("not encrypted by this plugin");
  return sealed.subarray(at + 1).map((byte) => byte ^ 0xff);
}
