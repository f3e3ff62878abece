/** `svc apiserver`: resolves with the exit code. */
export declare function run(argv: readonly string[]): Promise<number>;
