import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import {
  type AuthorizationDecision,
  authorizerType,
  authorizerValue,
  type CheckAttributes,
  resourceCheckType,
  resourceCheckValue,
} from "./authorizer.ts";

const names = createEnvironment({ variables: { authorizer: authorizerType }, nameFormats });

function ask(
  source: string,
  answer: AuthorizationDecision,
): { readonly questions: readonly CheckAttributes[]; readonly result: unknown } {
  const { program, errors } = compile(source, names);
  if (program === undefined) throw new Error(errors.map(({ message }) => message).join());
  const questions: CheckAttributes[] = [];
  const authorizer = authorizerValue((question) => {
    questions.push(question);
    return answer;
  });
  const { value, error } = program.evaluate({ authorizer });
  return { questions, result: error?.message ?? value };
}

const yes: AuthorizationDecision = { allowed: true, reason: "because" };

t.test("authorizer asks what the expression put together", (t) => {
  t.same(ask("authorizer.path('/healthz').check('get').allowed()", yes), {
    questions: [{ path: "/healthz", verb: "get" }],
    result: true,
  });
  const resource = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('x')";
  t.same(ask(`${resource}.labelSelector('a=b').check('update').reason()`, yes), {
    questions: [
      {
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        namespace: "n",
        name: "x",
        labelSelector: "a=b",
        verb: "update",
      },
    ],
    result: "because",
  });
  t.same(
    ask("authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('get').allowed()", yes).questions,
    [{ serviceAccount: { namespace: "ns", name: "sa" }, group: "", resource: "pods", verb: "get" }],
  );
  t.end();
});

t.test("authorizer tells errors from refusals", (t) => {
  const failed: AuthorizationDecision = { allowed: false, reason: "", error: "webhook is away" };
  const check = "authorizer.path('/x').check('get')";
  t.equal(ask(`${check}.errored()`, failed).result, true);
  t.equal(ask(`${check}.error()`, failed).result, "webhook is away");
  t.equal(ask(`${check}.error()`, yes).result, "");
  t.end();
});

t.test("authorizer refuses questions without an object", (t) => {
  t.equal(ask("authorizer.path(' ').check('get').allowed()", yes).result, "path must not be empty");
  t.equal(ask("authorizer.group('').resource('').check('get').allowed()", yes).result, "resource must not be empty");
  const account = "authorizer.serviceAccount('Not@valid', 'sa').path('/x').check('get').allowed()";
  t.equal(ask(account, yes).result, "Invalid service account namespace");
  t.end();
});

t.test("authorizer.requestResource asks for what the request is for", (t) => {
  const among = createEnvironment({ variables: { "authorizer.requestResource": resourceCheckType }, nameFormats });
  const { program } = compile("authorizer.requestResource.check('delete').allowed()", among);
  const asked: CheckAttributes[] = [];
  const resource = resourceCheckValue(
    (question) => {
      asked.push(question);
      return yes;
    },
    { group: "apps", resource: "deployments", namespace: "n" },
  );
  t.equal(program?.evaluate({ "authorizer.requestResource": resource }).value, true);
  t.same(asked, [{ group: "apps", resource: "deployments", namespace: "n", verb: "delete" }]);
  t.end();
});

t.test("authorizer lets an expression ask twice within its budget", (t) => {
  const once = "authorizer.path('/x').check('get').allowed()";
  t.equal(ask(`${once} && ${once}`, yes).result, true);
  t.equal(ask(`${once} && ${once} && ${once}`, yes).result, "operation cancelled: actual cost limit exceeded");
  t.end();
});
