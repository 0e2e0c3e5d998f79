// Needs more memory than any limit.
const strings = [];
for (let i = 0; ; i++) strings.push(`path ${i}`);
