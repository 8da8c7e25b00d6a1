//! What happens to posts: published, deleted. The aggregate is the post.

use serde::{Deserialize, Serialize};

use crate::{PlayerId, PostId};

/// Payload of `post_published`, schema version 1: a player has published a post. Its text is in its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostPublished {
    /// Which post.
    pub post_id: PostId,
    /// Whose.
    pub author_id: PlayerId,
}

/// Payload of `post_deleted`, schema version 1: a post is gone for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostDeleted {
    /// Which post.
    pub post_id: PostId,
    /// Whose.
    pub author_id: PlayerId,
}
