// server/routes/about.ts: this machine and its projects.
import { z } from 'zod';
import { AddProject, ApiAbout, ApiBranches, ApiProject, ApiProjects, type ApiAgent } from '../../protocol/api/api.ts';
import { listAgents, sandboxWorks, taskDefaults, type AgentFacts } from '../../agent-setup/about.ts';
import { budgetsNow } from '../../queries/budgets.ts';
import { projectBranches } from '../../projects/known-projects.ts';
import { route, type Route } from './route.ts';

const Nothing = z.object({});

export const ABOUT_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/about',
    summary: 'This machine: version, whether sandboxes work, agents, defaults',
    answer: ApiAbout,
    async run({ context, version }) {
      const [sandbox, agents, defaults] = [
        await sandboxWorks(context),
        await listAgents(context),
        await taskDefaults(context),
      ];
      return {
        version,
        budgets: await budgetsNow(context, null),
        sandbox,
        agents: agents.map(apiAgent),
        defaults: {
          agent: defaults.agent,
          parallel: defaults.parallel,
          maxSeconds: defaults.seconds,
          maxCostMicros: defaults.costMicros,
          maxTurns: defaults.turns,
        },
      };
    },
  }),
  route({
    method: 'GET',
    path: '/api/projects',
    summary: 'Projects that were added, that have tasks, or that are being cloned',
    answer: ApiProjects,
    async run({ taskIndex, knownProjects, seq }) {
      const at = seq('projects');
      await taskIndex.look('all');
      return { projects: await knownProjects.list(), seq: at };
    },
  }),
  route({
    method: 'POST',
    path: '/api/projects',
    summary: 'Add a directory of this machine, or clone a repository',
    body: AddProject,
    answer: ApiProject,
    run: ({ knownProjects }, { body }) =>
      'url' in body ? knownProjects.clone(body.url) : knownProjects.add(body.path),
  }),
  route({
    method: 'DELETE',
    path: '/api/projects/{project}',
    summary: 'Remove a project from the list; its files and tasks stay',
    answer: Nothing,
    async run({ knownProjects }, { ids }) {
      knownProjects.forget(ids['project'] ?? '');
      return {};
    },
  }),
  route({
    method: 'GET',
    path: '/api/projects/{project}/branches',
    summary: 'Branches that a task can start from or be merged into',
    answer: ApiBranches,
    run: ({ context, knownProjects }, { ids }) => projectBranches(context, knownProjects.path(ids['project'] ?? '')),
  }),
];

function apiAgent({ agent, program, signIn }: AgentFacts): ApiAgent {
  const ways = agent.signIns.map(({ title }) => title).join(', or ');
  return {
    name: agent.name,
    title: agent.title,
    installed: program !== null,
    version: program?.version ?? null,
    from: program === null ? null : (program.path ?? (program.source === 'built-in' ? 'part of ags' : 'ags')),
    signedIn:
      signIn.where === 'not needed'
        ? 'not-needed'
        : signIn.kind === null
          ? 'no'
          : signIn.problem === null
            ? 'yes'
            : 'expired',
    signIn:
      signIn.where === 'not needed'
        ? signIn.provider === null
          ? null
          : `${signIn.provider}, without a key`
        : signIn.kind === null && signIn.problem !== null
          ? `For ${signIn.provider}: ${signIn.problem}`
          : signIn.kind === null || signIn.problem !== null
            ? `Sign in with ${ways}: ags auth ${agent.name}`
            : signIn.variable === null
              ? `${KINDS[signIn.kind]} ${signIn.ending === null ? 'as configured' : `ending in ${signIn.ending}`}, for ${signIn.provider}`
              : `${KINDS[signIn.kind]} in ${signIn.variable}, for ${signIn.provider}`,
  };
}

const KINDS = { 'api-key': 'API key', token: 'Token', login: 'Log-in' } as const;
