// test/agent-setup/driver.mjs: runs ags with test-only agents, and sandboxes in which one of them is signed in as in a task.
// Run as the machine's caller: driver.mjs <dist> cli <arguments...> | inside <agent> <script> | token <agent> <pause ms>
import { statSync } from 'node:fs';

const [dist, what, ...rest] = process.argv.slice(2);
const load = (name) => import(`${dist}/${name}.js`);
const { AGENTS, agentNamed } = await load('agents/agents');

const endpoint = { host: 'allowed.test', port: 443, endpoint: 'ACME_BASE_URL' };
const readLogin = (text) => {
  const { access, refresh, expires, ...more } = JSON.parse(text);
  if (Object.keys(more).length > 0) throw new Error(`unexpected: ${text}`);
  return { access, refresh: refresh ?? null, expiresAtMs: expires ?? null };
};
const refresh = { url: 'https://tokens.test/token', clientId: 'acme-client' };
const base = {
  own: null,
  settings: [],
  hosts: [],
  scratch: [],
  gate: 'enforced',
  resumes: false,
  readHook: null,
  plan: () => ({}),
  drive: () => ({}),
};
const entry = (path) => ({ x64: path, arm64: path });
AGENTS.splice(
  0,
  AGENTS.length,
  {
    ...base,
    name: 'acme',
    title: 'Acme Agent',
    install: {
      package: 'acme-agent',
      version: '1.0.0',
      program: 'acme',
      entry: entry('acme-agent/bin/acme.js'),
      node: 18,
    },
    signIns: [
      {
        kind: 'api-key',
        title: 'API key of Acme',
        how: 'Make one at acme.test.',
        found: ['ACME_API_KEY'],
        secret: { ...endpoint, header: 'x-api-key', send: '{}', env: 'ACME_API_KEY' },
      },
      {
        kind: 'token',
        title: 'Token of an Acme subscription',
        how: 'acme setup-token prints one.',
        found: ['ACME_TOKEN'],
        secret: { ...endpoint, header: 'authorization', send: 'Bearer {}', env: 'ACME_TOKEN' },
      },
      {
        kind: 'login',
        title: 'Log-in of Acme',
        how: 'Open the address it prints.',
        found: [],
        secret: { ...endpoint, header: 'authorization', send: 'Bearer {}', env: null },
        login: { argv: ['log-in'], file: '.acme/auth.json', hosts: ['allowed.test'], read: readLogin, refresh },
      },
    ],
  },
  {
    ...base,
    name: 'bolt',
    title: 'Bolt',
    gate: 'observed',
    install: { package: 'bolt-agent', version: '2.0.0', program: 'bolt', entry: entry('bolt-agent/bolt'), node: null },
    signIns: [
      {
        kind: 'api-key',
        title: 'API key of Bolt',
        how: 'Ask Bolt.',
        found: ['BOLT_KEY'],
        secret: {
          host: 'allowed.test',
          port: 443,
          header: 'authorization',
          send: null,
          env: 'BOLT_KEY',
          endpoint: null,
        },
      },
      {
        kind: 'login',
        title: 'Log-in of Bolt',
        how: '',
        found: [],
        secret: {
          host: 'allowed.test',
          port: 443,
          header: 'authorization',
          send: 'Bearer {}',
          env: null,
          endpoint: 'BOLT_URL',
        },
        login: {
          argv: [],
          file: '.bolt/auth.json',
          hosts: [],
          read: readLogin,
          refresh: { ...refresh, as: 'json', more: { scope: 'all' } },
        },
      },
    ],
  },
  { ...base, name: 'plain', title: 'Plain', install: null, signIns: [] },
);

const { main } = await load('cli/main');
if (what === 'cli') process.exitCode = await main(rest);
else {
  const context = await contextOf();
  if (what === 'inside') process.exitCode = await inside(context, ...rest);
  if (what === 'token') process.exitCode = await token(context, ...rest);
  if (what === 'find') process.exitCode = await find(context, ...rest);
}

/** The host context of cli/main.ts, captured by a verb that does nothing. */
async function contextOf() {
  const { VERBS } = await load('cli/verbs/table');
  let context;
  VERBS.list = {
    ...VERBS.list,
    load: async () => ({ default: { options: {}, takes: 0, run: async (_, ctx) => ((context = ctx.host), 0) } }),
  };
  await main(['list']);
  return context;
}

/** exec/run-command.ts with an agent's secret added to those of the configuration. */
async function inside(context, name, script) {
  const { findSignIn } = await load('agent-setup/credentials');
  const { planRun } = await load('run/plan-run');
  const { createRun } = await load('run/create-run');
  const { prepareNetwork } = await load('run/network/plan-network');
  const { createTask } = await load('store/tasks');
  const { openRunNetwork } = await load('run/network/run-network');
  const { catchSignals, runSandboxed, writtenBy } = await load('run/run-sandboxed');
  const found = await findSignIn(context, agentNamed(name), null);
  if (found === null) return 44;
  const planned = await planRun(context, {});
  const config = { ...planned.config, secrets: [found.secret] };
  const plan = { ...planned, config, network: await prepareNetwork(context, config, true) };
  const { id, paths } = createTask(
    context.stateDir,
    () => `inside-${Math.random().toString(36).slice(2, 6)}`,
    () => ({ task: {}, run: {} }),
  );
  const spec = await createRun(context, plan, paths, id);
  const notice = (text) => process.stderr.write(`${text}\n`);
  const network = openRunNetwork({
    context,
    id,
    startedAtMs: Date.now(),
    project: plan.project.root,
    events: paths.events,
    config,
    grants: plan.network.grants,
    secrets: plan.network.secrets,
    notice,
  });
  const signals = catchSignals();
  const openStdio = async () => ({
    stdio: { stdin: 'ignore', stdout: 1, stderr: 2, terminal: null },
    close: async () => undefined,
  });
  const { exitCode } = await runSandboxed({
    context,
    plan,
    id,
    network,
    command: ['sh', '-c', script],
    openStdio,
    spec,
    runDir: paths.runDir,
    written: writtenBy(paths),
    signals,
  });
  await network[Symbol.asyncDispose]();
  return exitCode;
}

/** The token that the gateway would insert. */
async function token(context, name) {
  const { findSignIn } = await load('agent-setup/credentials');
  const { currentToken } = await load('run/network/token-refresh');
  const { checkSecret } = await load('run/network/open-gateway');
  const { userConfig } = await load('run/one-off-sandbox');
  const { secret } = await findSignIn(context, agentNamed(name), null);
  const { network } = await userConfig(context, context.stateDir);
  // The clock is read after each look at the stored tokens; the second look is under the lock.
  const now = () => (process.stderr.write('looked\n'), new Date());
  try {
    await checkSecret({ ...context, now }, network, secret);
    process.stdout.write(await currentToken(secret.from, { now: Date.now, post: async () => null }));
    return 0;
  } catch (error) {
    process.stdout.write(`${error.code}: ${error.message} ${error.hint}`);
    return 1;
  }
}

async function find(context, name) {
  const { findProgram, userView } = await load('agent-setup/programs');
  const { versionNotice } = await load('agent-setup/version');
  const program = await findProgram(context, agentNamed(name), await userView(context));
  const notices = program === null ? [] : [0, 1].map(() => versionNotice(context, agentNamed(name), program));
  process.stdout.write(
    JSON.stringify({ program, notices, dir: statSync(context.stateDir, { throwIfNoEntry: false })?.mode }),
  );
  return 0;
}
