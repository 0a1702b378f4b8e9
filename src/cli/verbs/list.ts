import type { Verb } from '../verb.ts'; const verb: Verb = { summary: '', usage: '', examples: [], options: {}, async run() { return 1; } }; export default verb;
