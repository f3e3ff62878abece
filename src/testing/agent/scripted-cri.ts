/**
 * A CRI server on a unix socket with scripted faults, for tests. It passes calls on to a fake or a real runtime, so
 * that the same faults can be tested with both.
 */
import * as grpc from "@grpc/grpc-js";
import { imageService, runtimeService } from "../../agent/runtime/cri/services.ts";
import { type ImageService, type Runtime, RuntimeError } from "../../agent/runtime/runtime.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";

export type CriMethod = keyof typeof runtimeService | keyof typeof imageService;

/** A received call; the signal aborts when the client disconnects or the server is killed. */
export interface CriCall {
  readonly method: CriMethod;
  readonly request: unknown;
  readonly signal: AbortSignal;
}

/** The call continues when the promise resolves, and fails with its rejection. */
export type FaultAction = (call: CriCall) => Promise<void> | void;

export interface Fault {
  readonly method: CriMethod;
  /** Only the nth call of this method after the fault was set, from 1; undefined: all. */
  readonly nth?: number;
  /** Before the runtime gets the call, or after it has completed and before the response. */
  readonly when: "before" | "after";
  readonly action: FaultAction;
}

export interface CriBackend {
  readonly runtime: Partial<Runtime>;
  readonly images: Partial<ImageService>;
}

/** Delays the call, so that others overtake it. */
export function delay(clock: Clock, milliseconds: number): FaultAction {
  return ({ signal }) => clock.sleep(milliseconds, signal);
}

export function fail(code: string, text: string): FaultAction {
  return () => Promise.reject(new RuntimeError(code, text));
}

/** The client gets no response. */
export const neverRespond: FaultAction = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", reject));

type Unary = grpc.handleUnaryCall<unknown, unknown>;

export class ScriptedCri implements AsyncDisposable {
  readonly endpoint: string;
  /** Methods of the calls, in order. */
  readonly calls: CriMethod[] = [];
  readonly #backend: CriBackend;
  readonly #faults: { readonly fault: Fault; seen: number }[] = [];
  #server: grpc.Server | undefined;
  #killed = new AbortController();

  constructor(path: string, backend: CriBackend) {
    this.endpoint = `unix://${path}`;
    this.#backend = backend;
  }

  /** Listens, also again after `kill`. */
  async start(): Promise<void> {
    this.#killed = new AbortController();
    const server = new grpc.Server({ "grpc.max_receive_message_length": 16 * 2 ** 20 });
    server.addService(...this.#service("runtime.v1.RuntimeService", runtimeService, this.#backend.runtime));
    server.addService(...this.#service("runtime.v1.ImageService", imageService, this.#backend.images));
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(this.endpoint, grpc.ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }

  /** Closes all connections and stops listening; the runtime continues. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#killed.abort(new Error("the server was killed"));
  }

  /** Sets a fault; the returned function removes it. */
  on(fault: Fault): () => void {
    const entry = { fault, seen: 0 };
    this.#faults.push(entry);
    return () => {
      const index = this.#faults.indexOf(entry);
      if (index >= 0) this.#faults.splice(index, 1);
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
  }

  #service(
    name: string,
    methods: Readonly<Record<string, { readonly request: ObjectSchema; readonly response: ObjectSchema }>>,
    backend: object,
  ): [grpc.ServiceDefinition, Record<string, Unary>] {
    const definition: Record<string, grpc.MethodDefinition<object, object>> = {};
    const handlers: Record<string, Unary> = {};
    for (const [method, { request, response }] of Object.entries(methods)) {
      const work = (backend as Readonly<Record<string, Work | undefined>>)[camelCase(method)];
      if (work === undefined) continue;
      definition[method] = defineUnaryMethod(`/${name}/${method}`, request, response);
      handlers[method] = this.#handler(method as CriMethod, work);
    }
    return [definition, handlers];
  }

  #handler(method: CriMethod, work: Work): Unary {
    return (call, respond) => {
      const cancelled = new AbortController();
      call.on("cancelled", () => cancelled.abort(new Error("the client cancelled the call")));
      const { request } = call;
      const received: CriCall = { method, request, signal: AbortSignal.any([cancelled.signal, this.#killed.signal]) };
      this.calls.push(method);
      this.#run(received, work, cancelled.signal).then(
        (value) => respond(null, value),
        (error: unknown) => respond(toStatus(error)),
      );
    };
  }

  async #run(call: CriCall, work: Work, cancelled: AbortSignal): Promise<unknown> {
    const faults = this.#takeFaults(call.method);
    for (const { action: act } of faults.filter(({ when }) => when === "before")) await act(call);
    call.signal.throwIfAborted();
    // Killing this server does not cancel the runtime's work.
    const value = await work(call.request, cancelled);
    for (const { action: act } of faults.filter(({ when }) => when === "after")) await act(call);
    return value;
  }

  #takeFaults(method: CriMethod): readonly Fault[] {
    const own = this.#faults.filter(({ fault }) => fault.method === method);
    for (const each of own) each.seen += 1;
    return own.filter(({ fault, seen }) => fault.nth === undefined || fault.nth === seen).map(({ fault }) => fault);
  }
}

type Work = (request: unknown, signal: AbortSignal) => Promise<unknown>;

function camelCase(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}

function toStatus(error: unknown): Partial<grpc.StatusObject> {
  const code = error instanceof RuntimeError ? error.code : "UNKNOWN";
  const details = error instanceof RuntimeError ? error.detail : String(error);
  return { code: grpc.status[code as keyof typeof grpc.status] ?? grpc.status.UNKNOWN, details };
}
