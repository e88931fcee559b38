//! What a recording knows before it is converted.

use ft_trace::spool::frame::Frame;
use ft_trace::spool::mapping::Mapping;
use ft_trace::spool::{ReadError, Reader, Spool};

/// Whether there is such a mapping among those of the recorded processes.
pub fn has_mapping(spool: &Spool, is_it: impl Fn(&Mapping) -> bool) -> Result<bool, ReadError> {
    let mut reader = Reader::open(&spool.registry())?;
    while let Some(frame) = reader.next()? {
        if let Frame::Mappings(told) = frame
            && told.mappings.iter().any(&is_it)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
