// A site of some age: posts with tags that link to each other, and pages.
'use strict';

const WORDS = ('harbour winter bread letter garden river morning copper engine valley market '
    + 'story lantern orchard paper signal thunder village window yellow anchor bridge candle desert').split(' ');
const SITE = process.env.url;

let state = Number(process.env.APP_SEED) >>> 0;

// A number below a bound (mulberry32).
function below(bound) {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
}

function words(count) {
    return Array.from({length: count}, () => WORDS[below(WORDS.length)]).join(' ');
}

// A text in the form of Ghost's editor.
function lexical(children) {
    return JSON.stringify({root: {type: 'root', version: 1, direction: null, format: '', indent: 0, children}});
}

function paragraph(slugs) {
    const children = [{type: 'text', version: 1, text: words(30 + below(50)) + ' '}];
    if (slugs.length > 0) {
        const url = `${SITE}/${slugs[below(slugs.length)]}/`;
        children.push({type: 'link', version: 1, url, children: [{type: 'text', version: 1, text: words(2)}]});
    }
    return {type: 'paragraph', version: 1, children};
}

async function main() {
    const server = await require(`${process.cwd()}/core/boot`)();
    const api = `http://127.0.0.1:${server.httpServer.address().port}/ghost/api/admin/`;
    let cookie = '';

    async function send(method, path, body) {
        const headers = {'content-type': 'application/json', origin: SITE, cookie};
        const answer = await fetch(api + path, {method, headers, body: JSON.stringify(body)});
        // The session is kept only when the answer has ended.
        const text = await answer.text();
        if (!answer.ok) {
            throw new Error(`${method} ${path}: ${answer.status}: ${text}`);
        }
        cookie = (answer.headers.get('set-cookie') ?? cookie).split(';')[0];
    }

    const [username, password] = ['admin@site.test', 'a-lantern-in-the-harbour'];
    await send('POST', 'authentication/setup/', {
        setup: [{name: 'Ada Admin', email: username, password, blogTitle: 'A crawled site'}]
    });
    await send('POST', 'session/', {username, password});
    // What comes with a new site has pictures that lie on other hosts.
    await send('DELETE', 'posts/?filter=status:published');
    await send('PUT', 'settings/', {settings: [{key: 'cover_image', value: null}]});

    const slugs = [];
    for (let number = 0; number < 60; number++) {
        const slug = `post-${number}`;
        const day = Date.UTC(2025, 11, 1) + number * 3 * 86400000;
        await send('POST', 'posts/', {posts: [{
            title: words(2 + below(4)),
            slug,
            status: 'published',
            featured: number % 10 === 0,
            published_at: new Date(day).toISOString(),
            tags: Array.from({length: 2}, () => ({name: WORDS[below(8)]})),
            lexical: lexical(Array.from({length: 2 + below(5)}, () => paragraph(slugs)))
        }]});
        slugs.push(slug);
    }
    for (let number = 0; number < 5; number++) {
        await send('POST', 'pages/', {pages: [{title: words(2), status: 'published', lexical: lexical([paragraph(slugs)])}]});
    }
    // What the editor sends with a script, the crawler sends with forms.
    const forms = ['session', 'posts'].map(what => `<form action="/ghost/api/admin/${what}/" method="post"></form>`);
    const card = {type: 'html', version: 1, html: forms.join('')};
    await send('POST', 'pages/', {pages: [{title: 'Staff', slug: 'staff', status: 'published', lexical: lexical([card])}]});
    process.exit(0);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
