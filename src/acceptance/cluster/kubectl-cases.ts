/**
 * Command lines of kubectl with their expected output. The cases run in order, in a new namespace, `$NS`. Releases 1.20
 * to 1.33 differ in some texts and commands.
 */
import { exampleImage } from "./example-image.ts";

export interface KubectlCase {
  /** Arguments of kubectl, split at blanks; an array when one contains blanks. */
  readonly run: string | readonly string[];
  readonly input?: string;
  /** A sed expression that replaces the editor. */
  readonly editor?: string;
  /** 0 when absent. */
  readonly code?: number;
  /** Expected standard output; "" means empty. */
  readonly out?: RegExp | "";
  readonly err?: RegExp;
  /** Expected on stdout or stderr, where releases differ. */
  readonly output?: RegExp;
  /** The first minor release that has it. */
  readonly since?: number;
  /** Repeat the command until the output is as expected. */
  readonly retry?: true;
}

const typo = `apiVersion: v1
kind: Pod
metadata: { name: typo }
spec:
  containers:
    - { name: typo, image: "${exampleImage}", commandz: ["true"] }
`;

const plain = (greeting: string): string => `apiVersion: v1
kind: ConfigMap
metadata: { name: plain, namespace: $NS }
data: { greeting: ${greeting} }
`;

const applying: readonly KubectlCase[] = [
  { run: "create namespace $NS", out: /^namespace\/\$NS created\n$/ },
  { run: "create namespace $NS", code: 1, err: /namespaces "\$NS" already exists/ },
  {
    run: "apply -f testdata/examples",
    out: /pod\/hello created\n.*secret\/settings created\npod\/settings created\n/s,
  },
  { run: "apply -f testdata/examples", out: /pod\/hello unchanged\nconfigmap\/settings unchanged\n/ },
  { run: "apply -f -", input: typo, code: 1, err: /unknown field "(spec\.containers\[0\]\.)?commandz"/ },
  { run: "apply -f - --dry-run=client --validate=false", input: typo, out: /pod\/typo created \(dry run\)/ },
  {
    run: "create -f - --validate=strict",
    input: typo,
    since: 25,
    code: 1,
    err: /strict decoding error: unknown field/,
  },
  { run: "create -f - --validate=warn --dry-run=server", input: typo, since: 25, err: /Warning: unknown field/ },
  { run: "apply --server-side -f testdata/examples/hello.yaml", out: /pod\/hello serverside-applied/ },
  { run: "diff -f testdata/examples/hello.yaml", out: "" },
  { run: "wait --for=condition=Ready pod/hello pod/settings --timeout=60s", out: /pod\/hello condition met/ },
  { run: "wait --for=jsonpath={.status.phase}=Running pod/hello", since: 23, out: /pod\/hello condition met/ },
];

const reading: readonly KubectlCase[] = [
  { run: "get pods", out: /^NAME +READY +STATUS +RESTARTS +AGE\nhello +1\/1 +Running +0 +\S+\nsettings +1\/1/ },
  { run: "get pods -o wide", out: /\nhello +1\/1 +Running +0 +\S+ +10\.\S+ +e2e +<none> +<none>\n/ },
  { run: "get pods -A", out: /^NAMESPACE +NAME .*\n(.*\n)*\$NS +hello / },
  { run: "get pods -l app=hello -o name", out: /^pod\/hello\n$/ },
  { run: ["get", "pods", "-l", "app in (settings, other),!absent", "-o", "name"], out: /^pod\/settings\n$/ },
  { run: "get pods -l a=b=c", code: 1, err: /BadRequest|[Uu]nable to find|unable to parse/ },
  { run: "get pods --field-selector spec.nodeName=e2e,status.phase!=Failed -o name", out: /pod\/hello\npod\/settings/ },
  { run: "get pods --field-selector spec.colour=red", code: 1, err: /field label not supported: spec\.colour/ },
  { run: "get pods -o jsonpath={.items[*].metadata.name}", out: /^hello settings$/ },
  { run: "get pods -o custom-columns=N:.metadata.name,I:.status.podIP", out: /^N +I\nhello +10\./ },
  { run: "get pods --sort-by=.metadata.name --no-headers", out: /^hello .*\nsettings .*\n$/ },
  { run: "get pods --chunk-size=1", out: /\nhello .*\nsettings / },
  { run: "get pods --show-labels -L app", out: /\nhello +1\/1 .* hello +app=hello\n/ },
  { run: "get pod/hello -o yaml", out: /^apiVersion: v1\nkind: Pod\n(.*\n)* {2}phase: Running/ },
  { run: "get pod/hello -o json", out: /"kind": "Pod"/ },
  { run: "get pods,configmaps,secrets", out: /pod\/hello .*configmap\/settings .*secret\/settings +Opaque +1 /s },
  { run: "get all", out: /hello +1\/1/ },
  { run: "get pod absent", code: 1, err: /pods "absent" not found/ },
  { run: "get unicorns", code: 1, err: /the server doesn't have a resource type "unicorns"/ },
  { run: "get nodes", out: /\ne2e +Ready +<none> +\S+ +v1\.33\./ },
  { run: "get nodes -o wide", out: /INTERNAL-IP .*\ne2e +Ready .* containerd:\/\// },
  { run: "get namespaces", out: /\ndefault +Active .*\n(.*\n)*\$NS +Active / },
  { run: "get events", out: /LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n(.*\n)*.*Scheduled +pod\/hello +Successfully/ },
  {
    run: "get events -o wide --field-selector involvedObject.name=hello,reason=Started",
    out: /spec\.containers\{hello\}/,
  },
  { run: "get events.v1.events.k8s.io -o name", out: /event\.events\.k8s\.io\/hello\./ },
  { run: "events --for pod/hello", since: 26, out: /Started +Pod\/hello/ },
  { run: "get cm,secret,sa -o name", out: /configmap\/settings\nsecret\/settings/ },
  { run: "get leases -A", out: /kube-node-lease +e2e +e2e / },
  {
    run: "get --raw /apis/coordination.svc.io/v1/namespaces/kube-node-lease/leases/e2e",
    out: /"apiVersion":"coordination\.svc\.io\/v1"/,
  },
  { run: "describe pod hello", out: /Status: +Running\n(.*\n)*Events:\n(.*\n)* +Normal +Started / },
  { run: "describe node e2e", out: /Ready +True(.*\n)*Non-terminated Pods:(.*\n)* +\$NS +hello +10m / },
  { run: "describe namespace $NS", out: /Name: +\$NS\n(.*\n)*Status: +Active/ },
  { run: "describe cm settings", out: /greeting:\n----\ngood morning\n/ },
  { run: "describe secret settings", out: /password: +11 bytes/ },
  { run: "describe events", out: /Reason: +Scheduled/ },
];

const logs: readonly KubectlCase[] = [
  { run: "logs hello", retry: true, out: /^hello 1 from hello\nhello 2 / },
  { run: "logs hello -c hello --tail=1", out: /^hello \d+ from hello\n$/ },
  { run: "logs hello --tail=0", out: "" },
  { run: "logs hello --since=1h --limit-bytes=5", out: /^hello$/ },
  { run: "logs hello --since-time=2999-01-01T00:00:00Z", out: "" },
  { run: "logs hello --timestamps --tail=1", out: /^\d{4}-\d\d-\d\dT[\d:.]+\S+ hello \d+/ },
  { run: "logs -l app=hello --tail=1", out: /^hello \d+/ },
  { run: "logs hello -c absent", code: 1, err: /container absent is not valid for pod hello/ },
  { run: "logs hello --previous", code: 1, err: /previous terminated container "hello" in pod "hello" not found/ },
  {
    run: ["run", "crash", `--image=${exampleImage}`, "--", "sh", "-c", "echo once; exit 3"],
    out: /pod\/crash created/,
  },
  { run: "get pod crash -o jsonpath={.status.containerStatuses[0].restartCount}", retry: true, out: /^[1-9]/ },
  { run: "logs crash -p", retry: true, out: /^once\n$/ },
];

const changing: readonly KubectlCase[] = [
  { run: "label pod hello colour=red", out: /pod\/hello labeled/ },
  { run: "label pod hello colour=blue", code: 1, err: /already has a value \(red\)/ },
  { run: "label pod hello colour=blue --overwrite", out: /pod\/hello labeled/ },
  { run: "label pod hello colour-", out: /pod\/hello (un)?labeled/ },
  { run: "label pods --all tier=front", out: /pod\/hello labeled\n/ },
  { run: "label pod hello colour=-", code: 1, err: /[Ii]nvalid/ },
  { run: "annotate pod hello note=read", out: /pod\/hello annotated?/ },
  { run: "annotate pod hello note-", out: /pod\/hello (un)?annotated?/ },
  { run: 'patch cm settings -p {"data":{"k":"v"}}', out: /configmap\/settings patched/ },
  { run: 'patch cm settings -p {"data":{"k":"v"}}', out: /configmap\/settings patched \(no change\)/ },
  { run: 'patch cm settings --type=merge -p {"data":{"k":null}}', out: /configmap\/settings patched/ },
  { run: 'patch cm settings --type=json -p [{"op":"add","path":"/data/z","value":"1"}]', out: /settings patched/ },
  { run: 'patch cm settings --type=json -p [{"op":"remove","path":"/data/absent"}]', code: 1, err: /[Ii]nvalid/ },
  { run: 'patch cm settings --type=json -p [{"op":"replace","path":"/data/y","value":"2"}]', out: /settings patched/ },
  { run: "get cm settings -o jsonpath={.data.z}{.data.k}{.data.y}", out: /^12$/ },
  {
    run: 'patch pod hello -p {"spec":{"nodeName":"other"}}',
    code: 1,
    err: /pod updates may not change fields other than/,
  },
  { run: "create -f -", input: plain("one"), out: /configmap\/plain created/ },
  { run: "replace -f -", input: plain("two"), out: /configmap\/plain replaced/ },
  { run: "diff -f -", input: plain("three"), code: 1, out: /- {2}greeting: two\n\+ {2}greeting: three/ },
  { run: "edit cm plain", editor: "s/greeting: two/greeting: four/", out: /configmap\/plain edited/ },
  { run: "edit cm plain", editor: "s/absent/present/", output: /Edit cancelled, no changes made/ },
  { run: "get cm plain -o jsonpath={.data.greeting}", out: /^four$/ },
  { run: "replace --force -f -", input: plain("five"), out: /configmap\/plain replaced/ },
  {
    run: "replace -f -",
    input: plain("six").replace("name: plain", "name: absent"),
    code: 1,
    err: /"absent" not found/,
  },
  { run: "create cm cm1 --from-literal=a=b --from-file=Makefile", out: /configmap\/cm1 created/ },
  { run: "create secret generic s1 --from-literal=a=b", out: /secret\/s1 created/ },
  {
    run: "create secret docker-registry s2 --docker-server=x --docker-username=u --docker-password=p",
    out: /s2 created/,
  },
  { run: "get secret s2", out: /s2 +kubernetes\.io\/dockerconfigjson +1 / },
  { run: "create serviceaccount sa1", out: /serviceaccount\/sa1 created/ },
  { run: "create sa sa1 --dry-run=server -o name", code: 1, err: /serviceaccounts "sa1" already exists/ },
  { run: "create cm cm1", code: 1, err: /configmaps "cm1" already exists/ },
  { run: "create cm cm2 -n absent", code: 1, err: /namespaces "absent" not found/ },
  {
    run: "create cm BAD_NAME",
    code: 1,
    err: /metadata\.name: Invalid value: "BAD_NAME": a lowercase RFC 1123 subdomain/,
  },
  { run: `run dry --image=${exampleImage} --dry-run=client -o yaml`, out: /kind: Pod\n(.*\n)* {2}name: dry\n/ },
  {
    run: `run dry --image=${exampleImage} --dry-run=server -o yaml`,
    out: / {4}imagePullPolicy: IfNotPresent\n(.*\n)*.*qosClass/,
  },
  { run: "get pod dry", code: 1, err: /pods "dry" not found/ },
];

const looking: readonly KubectlCase[] = [
  {
    run: "api-resources",
    out: /^(?!(.*\n)*.*svc\.io)(.*\n)*leases +coordination\.k8s\.io\/v1 +true +Lease\n/,
  },
  {
    run: "api-resources --namespaced=false -o name",
    out: /(^|\n)nodes\n(.*\n)*clusterroles\.rbac\.authorization\.k8s\.io\n/,
  },
  { run: "api-resources --verbs=deletecollection -o wide", out: /\npods +po +v1 +true +Pod +\[?create/ },
  { run: "api-versions", out: /\napps\/v1\n(.*\n)*events\.k8s\.io\/v1\n(.*\n)*v1\n$/ },
  { run: "explain pod.spec.containers", out: /KIND: +Pod\n(.*\n)*.*imagePullPolicy\s+<string>/ },
  { run: "explain pod.spec.absent", code: 1, err: /field "absent" does not exist/ },
  { run: "explain leases --api-version=coordination.k8s.io/v1 --recursive", out: /holderIdentity\s+<string>/ },
  { run: "version -o json", out: /"serverVersion": \{\n(.*\n)* +"minor": "33"/ },
  { run: "config view --minify", out: /server: https:\/\/127\.0\.0\.1/ },
  { run: "get --raw /healthz", out: /^ok$/ },
  { run: "get --raw /livez", out: /^ok$/ },
  { run: "get --raw /readyz?verbose", out: /\[\+\]ping ok\n(.*\n)*readyz check passed\n$/ },
  { run: "get --raw /version", out: /"gitVersion": ?"v1\.33\./ },
  { run: "get --raw /absent", code: 1, err: /the server could not find the requested resource/ },
];

const shared = (word: string): string => `apiVersion: v1
kind: ConfigMap
metadata: { name: shared, namespace: $NS }
data: { a: ${word} }
`;

/** Workloads, whose controllers are not part of svc: only the API is tested. */
const workloads: readonly KubectlCase[] = [
  { run: "create deployment web --image=web:1 --port=80", since: 20, out: /deployment\.apps\/web created/ },
  { run: "get deployment web", out: /NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/1 +[01] +0 / },
  { run: "get deploy web -o wide", out: /CONTAINERS +IMAGES +SELECTOR\nweb .* web +web:1 +app=web\n/ },
  { run: "scale deployment web --replicas=3", out: /deployment\.apps\/web scaled/ },
  { run: "get deploy web -o jsonpath={.spec.replicas}{.metadata.generation}", out: /^32$/ },
  { run: "set image deployment/web web=web:2", out: /deployment\.apps\/web image updated/ },
  { run: "set env deployment/web COLOUR=blue", out: /deployment\.apps\/web env updated/ },
  { run: "set resources deployment/web --limits=cpu=100m", out: /deployment\.apps\/web resource requirements updated/ },
  { run: "rollout pause deployment/web", out: /deployment\.apps\/web paused/ },
  { run: "rollout resume deployment/web", out: /deployment\.apps\/web resumed/ },
  { run: "rollout restart deployment/web", out: /deployment\.apps\/web restarted/ },
  { run: "autoscale deployment web --max=5", out: /horizontalpodautoscaler\.autoscaling\/web autoscaled/ },
  { run: "get hpa web", out: /web +Deployment\/web .* 1 +5 +0 / },
  { run: "expose deployment web --port=80 --target-port=8080", out: /service\/web exposed/ },
  {
    run: "get service web",
    out: /NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\nweb +ClusterIP +10\.[\d.]+ +<none> +80\/TCP /,
  },
  { run: "create service nodeport np --tcp=80:8080", out: /service\/np created/ },
  { run: "get svc np", out: /np +NodePort +10\.[\d.]+ +<none> +80:3\d{4}\/TCP / },
  {
    run: "create ingress web --rule=example.com/*=web:80",
    since: 20,
    out: /ingress\.networking\.k8s\.io\/web created/,
  },
  { run: "get ingress web", since: 20, out: /web +<none> +example\.com +80 / },
  { run: "create job once --image=web:1", out: /job\.batch\/once created/ },
  {
    run: ["create", "cronjob", "nightly", "--image=web:1", "--schedule=0 1 * * *"],
    since: 21,
    out: /cronjob\.batch\/nightly created/,
  },
  { run: "get cronjob nightly", since: 21, out: /nightly +0 1 \* \* \* +(<none> +)?False +0 +<none> / },
  {
    run: "create pdb web --selector=app=web --min-available=1",
    since: 21,
    out: /poddisruptionbudget\.policy\/web created/,
  },
  { run: "create quota small --hard=pods=100", out: /resourcequota\/small created/ },
  { run: "create priorityclass $NS --value=5", out: /priorityclass\.scheduling\.k8s\.io\/\$NS created/ },
  { run: "delete priorityclass $NS", out: /deleted/ },
  { run: "describe deployment web", out: /Replicas: +3 desired(.*\n)*.*StrategyType: +RollingUpdate/ },
  { run: "describe service web", out: /TargetPort: +8080\/TCP/ },
  { run: "get all", out: /service\/web (.*\n)*.*deployment\.apps\/web / },
  { run: "delete deploy,svc,hpa,ing,job web np once --ignore-not-found", out: /deployment\.apps "web" deleted/ },
];

const access: readonly KubectlCase[] = [
  { run: "auth can-i get pods", out: /^yes\n$/ },
  {
    run: "auth can-i --list --as=eve",
    out: /selfsubjectreviews\.authentication|selfsubjectaccessreviews\.authorization/,
  },
  { run: "auth can-i list pods --as=eve", code: 1, out: /^no\n$/ },
  {
    run: "create role reader --verb=get,list --resource=pods",
    out: /role\.rbac\.authorization\.k8s\.io\/reader created/,
  },
  {
    run: "create rolebinding eve --role=reader --user=eve",
    out: /rolebinding\.rbac\.authorization\.k8s\.io\/eve created/,
  },
  { run: "auth can-i list pods --as=eve", out: /^yes\n$/, retry: true },
  { run: "get pods --as=eve", out: /NAME +READY/ },
  { run: "get secrets --as=eve", code: 1, err: /secrets is forbidden: User "eve" cannot list resource "secrets"/ },
  { run: "describe role reader", out: /pods +\[\] +\[\] +\[get list\]/ },
  { run: "auth whoami", since: 28, out: /Username +svc-admin/ },
];

const sharing: readonly KubectlCase[] = [
  {
    run: "apply --server-side --field-manager=one -f -",
    input: shared("one"),
    out: /configmap\/shared serverside-applied/,
  },
  {
    run: "apply --server-side --field-manager=two -f -",
    input: shared("two"),
    code: 1,
    err: /Apply failed with 1 conflict: conflict with "one"( using v1)?: \.data\.a/,
  },
  {
    run: "apply --server-side --field-manager=two --force-conflicts -f -",
    input: shared("two"),
    out: /configmap\/shared serverside-applied/,
  },
  { run: "get cm shared -o jsonpath={.data.a}", out: /^two$/ },
  { run: "get cm shared -o yaml --show-managed-fields", since: 21, out: /manager: two\n +operation: Apply\n/ },
];

const measured: readonly KubectlCase[] = [
  { run: "top node", retry: true, out: /^NAME .*\ne2e +\d+m +\d+% +\d+Mi +\d+% *\n/ },
  { run: "top pod hello", retry: true, out: /^NAME .*\nhello +\d+m +\d+Mi *\n$/ },
];

const streams: readonly KubectlCase[] = [
  { run: "exec hello -- echo seen", out: /^seen\n$/ },
  { run: "exec hello -- false", code: 1, err: /command terminated with exit code 1/ },
];

const nodes: readonly KubectlCase[] = [
  { run: "taint node e2e example.com/tried=yes:PreferNoSchedule", out: /node\/e2e tainted/ },
  { run: "taint node e2e example.com/tried-", out: /node\/e2e untainted/ },
  { run: "label node e2e example.com/tried=yes", out: /node\/e2e labeled/ },
  { run: "label node e2e example.com/tried-", out: /node\/e2e (un)?labeled/ },
  { run: "cordon e2e", out: /node\/e2e cordoned/ },
  { run: "get node e2e", out: /Ready,SchedulingDisabled/ },
  { run: "drain e2e --dry-run=client", code: 1, err: /cannot delete .*\$NS\/hello/s },
  { run: "uncordon e2e", out: /node\/e2e uncordoned/ },
];

const deleting: readonly KubectlCase[] = [
  { run: "delete cm cm1", out: /^configmap "cm1" deleted/ },
  { run: "delete cm cm1", code: 1, err: /configmaps "cm1" not found/ },
  { run: "delete cm cm1 --ignore-not-found", out: "" },
  { run: "delete secret -l absent=yes", out: /No resources found|^$/ },
  { run: "delete secret --all --dry-run=server", out: /secret "s1" deleted.*\(server dry run\)/ },
  { run: "delete -f -", input: plain("five"), out: /configmap "plain" deleted/ },
  { run: "delete pod settings --grace-period=2 --wait=false", out: /pod "settings" deleted/ },
  { run: "get pod settings", out: /Terminating/ },
  { run: "wait --for=delete pod/settings --timeout=30s", out: /pod\/settings condition met/ },
  { run: "delete pods -l app=hello", out: /pod "hello" deleted/ },
  { run: "delete pod crash --force --grace-period=0", out: /pod "crash" force deleted/, err: /[Ww]arning: Immediate/ },
  { run: "get pods", out: "", err: /No resources found in \$NS namespace/ },
  { run: "delete namespace $NS --timeout=60s", out: /namespace "\$NS" deleted/ },
  { run: "get namespace $NS", code: 1, err: /namespaces "\$NS" not found/ },
];

export const kubectlCases: Readonly<Record<string, readonly KubectlCase[]>> = {
  applying,
  reading,
  logs,
  changing,
  looking,
  workloads,
  access,
  sharing,
  measured,
  streams,
  nodes,
  deleting,
};
